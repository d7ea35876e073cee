/* SPDX-License-Identifier: MIT */
/*
 * governor_words.h - what the governor did, in words: for the log, and as comments of a profile.
 */
#ifndef HT_BUDGET_GOVERNOR_WORDS_H
#define HT_BUDGET_GOVERNOR_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "budget/budget.h"

struct governor_view;
struct profile;

struct governor_step {
	uint64_t after_ns; /* since the process is followed */
	enum budget_step from;
	struct budget_plan plan; /* from here on */
	uint64_t rate_bytes;
	double share; /* of the CPU time: that made it necessary, or that it is expected to take */
	double limit;
	bool is_kill;
};

/* The first step and the last ones. */
#define GOVERNOR_HISTORY_CAP 8
struct governor_history {
	struct governor_step step[GOVERNOR_HISTORY_CAP];
	size_t cnt; /* in `step` */
	size_t step_cnt; /* at all */
};
void governor_history_add(struct governor_history *h, const struct governor_step *step);

#define GOVERNOR_WORDS_CAP 320
/* "its probes take 96 % of its CPU time (limit 5 %): ...". Returns buf. */
char *governor_step_words(const struct governor_step *step, char *buf, size_t buf_bytes);

/* "budget: at most 5 % of the CPU time of each process". */
int governor_comment_limit(struct profile *p, double max_share, double max_host_share);
/*
 * What a process cost, what was given up and since when, and what its values mean now. pid 0: all that
 * the profile is of. followed_ns: since when, CLOCK_MONOTONIC.
 */
int governor_comment_unit(struct profile *p, pid_t pid, const struct governor_view *view,
			  const struct governor_history *h, uint64_t followed_ns);

#endif
