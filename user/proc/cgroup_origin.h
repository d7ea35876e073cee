/* SPDX-License-Identifier: MIT */
/*
 * cgroup_origin.h - where this process's cgroup namespace begins.
 *
 * The kernel shows the paths in /proc/PID/cgroup, and the roots in mountinfo, relative to the root of the
 * reader's cgroup namespace (cgroup_namespaces(7)). A container that is shown the host's hierarchy reads
 * "/../other" for its neighbour, and "/../.." for the hierarchy's root. The path from that root to here is
 * shown nowhere: we search for the folder that contains this process, at the depth that the root's path tells.
 */
#ifndef HT_PROC_CGROUP_ORIGIN_H
#define HT_PROC_CGROUP_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

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
