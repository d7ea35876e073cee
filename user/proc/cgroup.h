/* SPDX-License-Identifier: MIT */
/*
 * cgroup.h - a cgroup as a user names it, and whether a process is in it or below it.
 *
 * A user may name it by its folder, /sys/fs/cgroup/system.slice/x.service (v2) or
 * /sys/fs/cgroup/memory/docker/ID (v1), or as /proc/PID/cgroup does, /system.slice/x.service, in any hierarchy.
 *
 * The kernel shows the paths in /proc/PID/cgroup, and the roots in mountinfo, relative to the root of the
 * reader's cgroup namespace (cgroup_namespaces(7)). A container that is shown the host's hierarchy reads
 * "/../other" for its neighbour, and "/../.." for the hierarchy's root. The path from that root to here, the
 * origin, is shown nowhere: we search for the folder that contains this process, at the depth that the root's
 * path tells.
 */
#ifndef HT_PROC_CGROUP_H
#define HT_PROC_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

struct err;

#define CGROUP_PATH_BYTES 512

/* Where the cgroups of the memory controller are mounted. */
struct cgroup_mount {
	char point[CGROUP_PATH_BYTES];
	char root[CGROUP_PATH_BYTES]; /* the cgroup at point: "/" except in some containers */
	char origin[CGROUP_PATH_BYTES]; /* of paths, when known; "": paths are seen from the root */
	bool is_v2;
};

/* A line of /proc/PID/cgroup, "hierarchy:controllers:path"; not terminated. */
struct cgroup_line {
	const char *controllers; /* separated by ','; none: version 2 */
	size_t controllers_len;
	const char *path;
	size_t path_len;
};

struct cgroup_place {
	char *path; /* as in /proc/PID/cgroup of the host; the root is "/", no '/' at the end */
	/* v1: super options of the hierarchy's mount, "rw,memory"; v2: ""; NULL: any hierarchy */
	char *controllers;
	char *origin; /* starting point of the paths in /proc/PID/cgroup */
};

/*
 * Turn text into a place, by the cgroup mounts in mountinfo (a /proc/PID/mountinfo), whose paths are seen from
 * origin ("": the root). Pure. -EINVAL: not the path of a cgroup (empty, or with ".." in it); -ENOMEM.
 */
int cgroup_parse(const char *text, const char *mountinfo, const char *origin,
		 struct cgroup_place *ret);
/* Call fn with each folder where the place may be: one for each mount that shows it. Pure. A non-zero result of
 * fn ends the loop and is returned. */
int cgroup_each_folder(const struct cgroup_place *place, const char *mountinfo,
		       int (*fn)(void *ctx, const char *folder), void *ctx);
/* Is a process in the place or below it? proc_cgroup: the process's /proc/PID/cgroup. Pure. */
bool cgroup_holds(const struct cgroup_place *place, const char *proc_cgroup);

/* Find a cgroup of this machine. -EINVAL, with a sentence for the user in why; -ENOENT, likewise, when it does
 * not exist now: it may come later, and *ret is its place-to-be, which must be released as well. */
int cgroup_find(const char *text, struct cgroup_place *ret, struct err *why);
void cgroup_release(struct cgroup_place *place);

/* Get the next line of *text, a /proc/PID/cgroup; *text moves behind it. false: there is none. Pure. */
bool cgroup_next_line(const char **text, struct cgroup_line *ret);
/* text: a /proc/PID/mountinfo. Version 1 where its memory controller is mounted, else version 2. Pure. -ENOENT:
 * neither. */
int cgroup_mount_find(const char *text, struct cgroup_mount *ret);
/* Find this machine's, with the origin of paths. -ENOENT: no memory cgroups are mounted. */
int cgroup_find_mount(struct cgroup_mount *ret);
/* Path of a process's memory cgroup in the kernel's form; text: its /proc/PID/cgroup. Pure. -ENOENT: it has none. */
int cgroup_memory_path(const struct cgroup_mount *mount, const char *text,
		       char ret[static CGROUP_PATH_BYTES]);

/* Does a path, as the kernel shows it, lead out of the namespace? Pure. */
bool cgroup_is_outside(const char *path);

/*
 * Turn path, seen from origin ("/pods/a", or "" for the hierarchy's root), into a path from the hierarchy's
 * root: "/../b" -> "/pods/b". Pure. -EINVAL: it leads above the root; -ENAMETOOLONG.
 */
int cgroup_absolute(const char *origin, const char *path, char *ret, size_t ret_bytes);

/*
 * Find the origin in the hierarchy that is mounted at `point` and whose root the kernel shows as `root`. own:
 * the path of this process in it. -ENOENT: not found; -ENAMETOOLONG.
 */
int cgroup_origin_find(const char *point, const char *root, const char *own, char *ret,
		       size_t ret_bytes);

#endif
