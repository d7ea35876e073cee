/* SPDX-License-Identifier: MIT */
/*
 * live_processes.h - a snapshot -> what each followed process holds, by scope and thread pool.
 */
#ifndef HT_SERVE_LIVE_PROCESSES_H
#define HT_SERVE_LIVE_PROCESSES_H

#include <stddef.h>

#include "base/vec.h"

struct profile;
struct profile_source;
struct serve_process;
struct serve_scope;
struct series_table;
struct snapshot;
struct target_memory;

struct live_processes {
	VEC(struct serve_process) all; /* largest first */
	VEC(struct serve_scope) scopes; /* of all of them */
	struct profile *names; /* what they are called; only its strings are used */
};

/* s: of snapshot_take_contexts(). Processes that have just ended are left out. */
int live_processes_make(const struct profile_source *src, const struct snapshot *s,
			struct series_table *book, struct target_memory *memory,
			struct live_processes *ret);
void live_processes_release(struct live_processes *lp);

#endif
