/* SPDX-License-Identifier: MIT */
/*
 * keep_cgroups.h - the memory cgroups of the watched processes: how near each is to its limit.
 *
 * Each is read once, however many processes are in it. Those that are far from their limits are read
 * once a second, the others whenever they are asked about.
 */
#ifndef HT_SAVED_KEEP_CGROUPS_H
#define HT_SAVED_KEEP_CGROUPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proc/cgroup_room.h"

struct keep_cgroup;
struct keep_cgroups;

/* limit_share: of the limit, from which on a cgroup counts as near, as in 0.9. Where no memory
 * cgroups are mounted no process has one. -ENOMEM. */
int keep_cgroups_new(double limit_share, struct keep_cgroups **ret);
void keep_cgroups_set_limit(struct keep_cgroups *cs, double limit_share);
/* NULL is fine. With all that were got. */
void keep_cgroups_free(struct keep_cgroups *cs);

/* The cgroup of a process, to be put back; NULL: not known, or out of memory. */
struct keep_cgroup *keep_cgroups_get(struct keep_cgroups *cs, pid_t pid);
/* NULL is fine. */
void keep_cgroups_put(struct keep_cgroups *cs, struct keep_cgroup *c);

/* Looks at all of them. now_ns: CLOCK_MONOTONIC. Says which have come near their limits. */
void keep_cgroups_read(struct keep_cgroups *cs, uint64_t now_ns);
/* Limits may have been changed: now and then. */
void keep_cgroups_refresh(struct keep_cgroups *cs);

/* As last read; all 0: never yet. */
const struct cgroup_room_reading *keep_cgroup_reading(const struct keep_cgroup *c);
/* The last keep_cgroups_read() found that it has come near, or that the kernel tells of new events. */
bool keep_cgroup_has_come_near(const struct keep_cgroup *c);
/* It came near, and has not gone back. */
bool keep_cgroup_is_near(const struct keep_cgroup *c);

#endif
