/* SPDX-License-Identifier: MIT */
/*
 * cgroup_memory.h - the memory limit and usage of a process's cgroup.
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

/* Where the cgroups of the memory controller are mounted. */
struct cgroup_mount {
	char point[CGROUP_PATH_BYTES];
	char root[CGROUP_PATH_BYTES]; /* the cgroup at point: "/" except in some containers */
	/* Origin of paths (cgroup_origin.h), when known; "": paths are seen from the root. */
	char origin[CGROUP_PATH_BYTES];
	bool is_v2;
};

/* text: a /proc/PID/mountinfo (pure). Version 1 where its controller is mounted, else version 2. -ENOENT:
 * neither. */
int cgroup_mount_find(const char *text, struct cgroup_mount *ret);
/* Path of a process's cgroup in the kernel's form; otherwise as cgroup_memory_dir(). */
int cgroup_memory_path(const struct cgroup_mount *mount, const char *text,
		       char ret[static CGROUP_PATH_BYTES]);
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

#endif
