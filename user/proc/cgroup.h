/* SPDX-License-Identifier: MIT */
/*
 * cgroup.h - a cgroup as a user names it, and whether a process is in it or below it.
 *
 * A user may name it by its folder, /sys/fs/cgroup/system.slice/x.service (v2) or
 * /sys/fs/cgroup/memory/docker/ID (v1), or as /proc/PID/cgroup does, /system.slice/x.service,
 * in whatever hierarchy it is.
 */
#ifndef HT_PROC_CGROUP_H
#define HT_PROC_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

struct err;

struct cgroup_place {
	char *path; /* as in /proc/PID/cgroup of the host, "/" the root, no '/' at its end */
	/* v1: what the hierarchy is mounted with, "rw,memory"; v2: ""; NULL: any hierarchy */
	char *controllers;
	char *origin; /* what /proc/PID/cgroup is told from: cgroup_origin.h */
};

/*
 * text -> place, by the cgroup mounts in mountinfo (a /proc/PID/mountinfo), told as seen from origin
 * ("": the root). Pure. -EINVAL: it is no
 * path of a cgroup (empty, or with ".." in it); -ENOMEM.
 */
int cgroup_parse(const char *text, const char *mountinfo, const char *origin,
		 struct cgroup_place *ret);
/* The folders where a place may be, one for each mount that shows it. Pure. fn returns non-zero to
 * stop with that value. */
int cgroup_each_folder(const struct cgroup_place *place, const char *mountinfo,
		       int (*fn)(void *ctx, const char *folder), void *ctx);
/* Is a process in it or below it? proc_cgroup: its /proc/PID/cgroup. Pure. */
bool cgroup_holds(const struct cgroup_place *place, const char *proc_cgroup);

/* One of this machine. -EINVAL, with a sentence for the user in why; or -ENOENT, likewise, when it does
 * not exist now: it may come, and *ret is where it would be, to be released all the same. */
int cgroup_find(const char *text, struct cgroup_place *ret, struct err *why);
void cgroup_release(struct cgroup_place *place);

#endif
