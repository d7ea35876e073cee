/* SPDX-License-Identifier: MIT */
/*
 * cgroup_origin.h - where this process's cgroup namespace begins.
 *
 * The kernel tells the paths in /proc/PID/cgroup, and the roots in mountinfo, as seen from the root of
 * the reader's cgroup namespace (cgroup_namespaces(7)). A container that is shown the host's hierarchy
 * reads "/../other" of its neighbour, and "/../.." of the hierarchy's root. What leads from there to here
 * nobody tells: the folder is found that has this process, as deep as the root is far up.
 */
#ifndef HT_PROC_CGROUP_ORIGIN_H
#define HT_PROC_CGROUP_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

/* Does a path, as the kernel tells it, lead out of the namespace? Pure. */
bool cgroup_is_outside(const char *path);

/*
 * path, seen from origin ("/pods/a", or "" for the hierarchy's root), as seen from the hierarchy's root:
 * "/../b" -> "/pods/b". Pure. -EINVAL: it leads above the root; -ENAMETOOLONG.
 */
int cgroup_absolute(const char *origin, const char *path, char *ret, size_t ret_bytes);

/*
 * The origin in the hierarchy whose root, told as `root`, is mounted at `point`. own: the path of this
 * process in it. -ENOENT: it is not found there; -ENAMETOOLONG.
 */
int cgroup_origin_find(const char *point, const char *root, const char *own, char *ret,
		       size_t ret_bytes);

#endif
