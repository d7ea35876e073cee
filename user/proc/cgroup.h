/* SPDX-License-Identifier: MIT */
/*
 * cgroup.h - a cgroup as a user names it, and whether a process is in it or below it.
 *
 * A user may name it by its folder, /sys/fs/cgroup/system.slice/x.service (v2) or
 * /sys/fs/cgroup/memory/docker/ID (v1), or as /proc/PID/cgroup does, /system.slice/x.service, in any hierarchy.
 */
#ifndef HT_PROC_CGROUP_H
#define HT_PROC_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

struct err;

struct cgroup_place {
	char *path; /* as in /proc/PID/cgroup of the host; the root is "/", no '/' at the end */
	/* v1: super options of the hierarchy's mount, "rw,memory"; v2: ""; NULL: any hierarchy */
	char *controllers;
	char *origin; /* starting point of the paths in /proc/PID/cgroup: cgroup_origin.h */
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

#endif
