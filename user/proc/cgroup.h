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

#include "base/std.h"

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

/*
 * The memory limit and usage of a process's cgroup, and how near it is to its limit.
 *
 *	https://docs.kernel.org/admin-guide/cgroup-v2.html
 *	https://docs.kernel.org/admin-guide/cgroup-v1/memory.html
 */

#define CGROUP_UNLIMITED UINT64_MAX

/* Folder of a process's cgroup; text: its /proc/PID/cgroup (pure). -ENOENT: the process has none here, or it is
 * outside the mounted part. */
int cgroup_memory_dir(const struct cgroup_mount *mount, const char *text,
		      char ret[static CGROUP_PATH_BYTES]);

/*
 * Return the tightest limit of the cgroup in dir and those above it (CGROUP_UNLIMITED: none). ret_dir: the
 * cgroup that has this limit, else dir; compare that one's usage with the limit. -ENODATA: nothing can be read,
 * as in the topmost cgroup.
 */
int cgroup_memory_limit(const struct cgroup_mount *mount, const char *dir, uint64_t *ret_bytes,
			char ret_dir[static CGROUP_PATH_BYTES]);
int cgroup_memory_usage(const struct cgroup_mount *mount, const char *dir, uint64_t *ret_bytes);

/*
 * How near a memory cgroup is to its limit; cheap enough to be asked a few times a second.
 *
 * A limit of an outer cgroup (a pod, a slice) binds as well. So all levels up to the mounted root are looked
 * at, and the level nearest to its limit is reported. Without any limit, the process's own cgroup is reported.
 *
 * Usage includes page cache, which a cgroup that reads files fills up to its limit without being in any
 * trouble. The working set is usage without the inactive part of the cache, which can be reclaimed at once;
 * Kubernetes evicts by it, too.
 */
struct cgroup_room;

struct cgroup_room_reading {
	uint64_t usage_bytes;
	uint64_t working_bytes; /* not more than usage_bytes */
	uint64_t limit_bytes; /* v2: the lower of memory.max and memory.high; 0: none */
	/* How often the kernel throttled the cgroup at memory.high (v2), or ran out of memory in it. Summed
	 * over the levels with a limit: events at their own limits, not at the limit of a group below. */
	uint64_t event_cnt;
};

/* Find the folder of a process's cgroup: see cgroup_memory_dir(). */
int cgroup_room_find_dir(const struct cgroup_mount *mount, pid_t pid,
			 char ret[static CGROUP_PATH_BYTES]);

/* Open a folder at or below the mount point. -ENOENT: it does not exist. */
int cgroup_room_open(const struct cgroup_mount *mount, const char *dir, struct cgroup_room **ret);
void cgroup_room_close(struct cgroup_room *c);
/* Look up again which levels have a limit. Call it now and then. */
void cgroup_room_refresh(struct cgroup_room *c);
/* Read the levels with a limit; cheap. -ENOENT: the cgroup is gone. */
int cgroup_room_read(const struct cgroup_room *c, struct cgroup_room_reading *ret);

#endif
