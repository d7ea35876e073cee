/* SPDX-License-Identifier: MIT */
/*
 * cgroup_memory.h - the memory limit and usage of a process's cgroup, and how near it is to its limit.
 *
 *	https://docs.kernel.org/admin-guide/cgroup-v2.html
 *	https://docs.kernel.org/admin-guide/cgroup-v1/memory.html
 */
#ifndef HT_PROC_CGROUP_MEMORY_H
#define HT_PROC_CGROUP_MEMORY_H

#include <stdint.h>
#include <sys/types.h>

#include "proc/cgroup.h"

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
