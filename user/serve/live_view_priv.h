/* SPDX-License-Identifier: MIT */
/* live_view_priv.h - the parts of live_view.c. */
#ifndef HT_SERVE_LIVE_VIEW_PRIV_H
#define HT_SERVE_LIVE_VIEW_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/vec.h"

struct profile;
struct result_source;
struct series_table;
struct serve_process;
struct serve_scope;
struct snapshot;
struct target_memory;

/*
 * live_view.c reads now and then what is resident of each process by row: see http/past.h.
 *
 * A job of the reader reads (record/rows_reader.h), one at a time, so a process that makes it wait makes nobody else wait. After
 * a reading nothing is read for ROWS_REST times as long as it took, and its process not for ROWS_OWN_REST times as long, nor
 * before the interval is over. So all readings together take at most 1 % of one CPU's time, and those of one process half of
 * that. A process of which the job did not answer is left alone for an hour, and all others for a minute.
 */

#define ROWS_REST 100
#define ROWS_OWN_REST 200
#define ROWS_LATE_NS (3600 * NS_PER_S)

/* How long nothing is read of a process after a reading of it, and of any. */
struct rows_pause {
	uint64_t own_ns, all_ns;
};
struct rows_pause rows_pause_after(uint64_t took_ns, bool is_late, uint64_t interval_ns);

/* live_processes.c: turns a snapshot into what each followed process holds, by scope and thread pool. */

struct live_processes {
	VEC(struct serve_process) all; /* largest first */
	VEC(struct serve_scope) scopes; /* of all processes */
	struct profile *names; /* their names; only its strings are used */
};

/* s is from snapshot_take_contexts(). Processes that have just ended are left out. */
int live_processes_make(const struct result_source *src, const struct snapshot *s,
			struct series_table *book, struct target_memory *memory,
			struct live_processes *ret);
void live_processes_release(struct live_processes *lp);

#endif
