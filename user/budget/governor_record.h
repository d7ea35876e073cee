/* SPDX-License-Identifier: MIT */
/* governor_record.h - the budget of one process: its present state, its totals, and the steps taken. */
#ifndef HT_BUDGET_GOVERNOR_RECORD_H
#define HT_BUDGET_GOVERNOR_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "budget/budget.h"
#include "profile/recording.h"

struct governor_step {
	pid_t pid; /* with several processes, the first one's */
	char *const *program_argv; /* of a program that was started for the recording, or NULL */
	bool follows_children; /* of a recording with --follow */
	uint64_t after_ns; /* since the process is followed */
	struct budget_plan from, plan; /* before, and from here on */
	uint64_t rate_bytes, base_rate_bytes; /* from here on, and that of BUDGET_FULL */
	struct budget_verdict verdict;
};

/* The first step and the last ones. */
#define GOVERNOR_HISTORY_CAP 8
struct governor_history {
	struct governor_step step[GOVERNOR_HISTORY_CAP];
	size_t cnt; /* in `step` */
	size_t step_cnt; /* in all */
};

struct governor_view {
	enum budget_step step;
	struct budget_price now; /* cost of probes in the last seconds */
	struct budget_price overall; /* since it is followed; NAN: not known */
	struct budget_price settled; /* since the first 4 s; NAN: not known */
	double cpu_ns; /* used since it is followed */
	struct budget_price full; /* cost of recording everything; NAN: this is done, or unknown */
	struct recording_limit limit; /* in force: one of the two is 0 */
	uint64_t rate_bytes;
	size_t step_cnt; /* taken so far */
	uint64_t inuse_ns; /* in-use counts blocks allocated since then; 0: since it is followed */
	bool has_inuse; /* frees are seen now */
	uint64_t watched_ns; /* time in which allocations were seen */
	bool was_always_recorded;
};

/* What a profile's comments say of one process, for a profile that is made after it has ended, or
 * executed another program. */
struct governor_record {
	bool is_known;
	struct governor_view view;
	struct governor_history history;
	uint64_t followed_ns;
	pid_t pid; /* 0: all, with is_one */
};

#endif
