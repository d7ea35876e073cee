/* SPDX-License-Identifier: MIT */
/*
 * cgroup_memory.h - how much memory the control group of a process may use, and uses.
 *
 *	https://docs.kernel.org/admin-guide/cgroup-v2.html
 *	https://docs.kernel.org/admin-guide/cgroup-v1/memory.html
 */
#ifndef HT_PROC_CGROUP_MEMORY_H
#define HT_PROC_CGROUP_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUP_PATH_BYTES 512
#define CGROUP_UNLIMITED UINT64_MAX

/* Where the groups of the memory controller are. */
struct cgroup_mount {
	char point[CGROUP_PATH_BYTES];
	char root[CGROUP_PATH_BYTES]; /* the group that is at point: "/" but in some containers */
	/* What paths are seen from (cgroup_origin.h), when it is known; "": from the root. */
	char origin[CGROUP_PATH_BYTES];
	bool is_v2;
};

/* text: a /proc/PID/mountinfo (pure). Version 1 where the controller is there, else version 2.
 * -ENOENT: neither. */
int cgroup_mount_find(const char *text, struct cgroup_mount *ret);
/* The path of a process's group as the kernel tells it; as cgroup_memory_dir(). */
int cgroup_memory_path(const struct cgroup_mount *mount, const char *text,
		       char ret[static CGROUP_PATH_BYTES]);
/* The folder of a process's group; text: its /proc/PID/cgroup (pure). -ENOENT: it has none here, or
 * it is outside of what is mounted. */
int cgroup_memory_dir(const struct cgroup_mount *mount, const char *text,
		      char ret[static CGROUP_PATH_BYTES]);

/*
 * The tightest limit of the group in dir and those above it (CGROUP_UNLIMITED: none), and into
 * ret_dir the group that has it, else dir: that is whose usage stands against the limit. -ENODATA:
 * there is nothing to be read, as in the topmost group.
 */
int cgroup_memory_limit(const struct cgroup_mount *mount, const char *dir, uint64_t *ret_bytes,
			char ret_dir[static CGROUP_PATH_BYTES]);
int cgroup_memory_usage(const struct cgroup_mount *mount, const char *dir, uint64_t *ret_bytes);

#endif
