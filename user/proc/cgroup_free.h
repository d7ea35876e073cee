/* SPDX-License-Identifier: MIT */
/*
 * cgroup_free.h - how near the memory cgroup of a process is to its limit, cheap enough to be asked
 * a few times a second. v1 and v2.
 *
 * A limit of an outer cgroup (a pod, a slice) binds as well, so all levels up to the mounted root
 * are looked at, and what is told is the level that is nearest to its limit. Without any limit it
 * is the process's own cgroup.
 *
 * Usage includes page cache, which a cgroup that reads files fills up to its limit without being
 * in any trouble. What cannot be had back for the asking is the working set: usage without the
 * inactive part of the cache, which is what Kubernetes evicts by, too.
 */
#ifndef HT_PROC_CGROUP_FREE_H
#define HT_PROC_CGROUP_FREE_H

#include <stdint.h>
#include <sys/types.h>

#include "proc/cgroup_memory.h"

struct cgroup_free;

struct cgroup_free_reading {
	uint64_t usage_bytes;
	uint64_t working_bytes; /* not more than that */
	uint64_t limit_bytes; /* v2: the lower of memory.max and memory.high; 0: none */
	/* Times that the kernel held the cgroup back, at memory.high (v2), or ran out of memory in
	 * it, over the levels with a limit: at their own limits, not at one of another group below. */
	uint64_t event_cnt;
};

/* Of this machine, and what paths are seen from. -ENOENT: no memory cgroups are mounted. */
int cgroup_free_find_mount(struct cgroup_mount *ret);
/* The folder of a process's cgroup: see cgroup_memory_dir(). */
int cgroup_free_find_dir(const struct cgroup_mount *mount, pid_t pid,
			 char ret[static CGROUP_PATH_BYTES]);

/* Of a folder at or below the mount point. -ENOENT: it is not there. */
int cgroup_free_open(const struct cgroup_mount *mount, const char *dir, struct cgroup_free **ret);
void cgroup_free_close(struct cgroup_free *c);
/* Which levels have a limit is looked at here: now and then. */
void cgroup_free_refresh(struct cgroup_free *c);
/* Cheap: the levels with a limit. -ENOENT: the cgroup is gone. */
int cgroup_free_read(const struct cgroup_free *c, struct cgroup_free_reading *ret);

#endif
