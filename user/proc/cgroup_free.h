/* SPDX-License-Identifier: MIT */
/*
 * cgroup_free.h - how near the memory cgroup of a process is to its limit; cheap enough to be asked a few times
 * a second. v1 and v2.
 *
 * A limit of an outer cgroup (a pod, a slice) binds as well. So all levels up to the mounted root are looked
 * at, and the level nearest to its limit is reported. Without any limit, the process's own cgroup is reported.
 *
 * Usage includes page cache, which a cgroup that reads files fills up to its limit without being in any
 * trouble. The working set is usage without the inactive part of the cache, which can be reclaimed at once;
 * Kubernetes evicts by it, too.
 */
#ifndef HT_PROC_CGROUP_FREE_H
#define HT_PROC_CGROUP_FREE_H

#include <stdint.h>
#include <sys/types.h>

#include "proc/cgroup_memory.h"

struct cgroup_free;

struct cgroup_free_reading {
	uint64_t usage_bytes;
	uint64_t working_bytes; /* not more than usage_bytes */
	uint64_t limit_bytes; /* v2: the lower of memory.max and memory.high; 0: none */
	/* How often the kernel throttled the cgroup at memory.high (v2), or ran out of memory in it. Summed
	 * over the levels with a limit: events at their own limits, not at the limit of a group below. */
	uint64_t event_cnt;
};

/* Find this machine's mount, and the origin of paths. -ENOENT: no memory cgroups are mounted. */
int cgroup_free_find_mount(struct cgroup_mount *ret);
/* Find the folder of a process's cgroup: see cgroup_memory_dir(). */
int cgroup_free_find_dir(const struct cgroup_mount *mount, pid_t pid,
			 char ret[static CGROUP_PATH_BYTES]);

/* Open a folder at or below the mount point. -ENOENT: it does not exist. */
int cgroup_free_open(const struct cgroup_mount *mount, const char *dir, struct cgroup_free **ret);
void cgroup_free_close(struct cgroup_free *c);
/* Look up again which levels have a limit. Call it now and then. */
void cgroup_free_refresh(struct cgroup_free *c);
/* Read the levels with a limit; cheap. -ENOENT: the cgroup is gone. */
int cgroup_free_read(const struct cgroup_free *c, struct cgroup_free_reading *ret);

#endif
