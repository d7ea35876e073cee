/* SPDX-License-Identifier: MIT */
/*
 * governor.h - keeps the followed processes within their overhead budget.
 *
 * Reads what the probes of each process cost, asks the controller (budget.h) what to give up, puts it into
 * effect, tells it to the user and keeps it for profiles and metrics. Called from the event loop.
 */
#ifndef HT_BUDGET_GOVERNOR_H
#define HT_BUDGET_GOVERNOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "budget/budget.h"
#include "budget/governor_words.h"

struct engine;
struct governor;
struct profile;
struct tracker;

#define BUDGET_DEFAULT_PERCENT 5
#define BUDGET_HOST_DEFAULT_PERCENT 2

struct governor_options {
	const char *command; /* for messages: "record", "serve" */
	double max_share; /* of the CPU time of each process; 0: no limit */
	double max_host_share; /* of the time of all CPUs, for all processes together; 0: no limit */
	uint64_t rate_bytes;
	struct budget_costs costs;
	bool keeps_ended; /* what is known of processes that have ended */
	bool is_one; /* all processes of the tracker are one: they share their probes */
};

/*
 * "5", "5%", "0.5" -> a share (0.05); "off", "0" and "none" -> 0, no limit. -EINVAL: neither, or not below
 * 100.
 */
int governor_parse_percent(const char *text, double *ret_share);

/* Makes the sampling tables of the engine from number 1 on, with no limit for what throws yet. */
int governor_new(struct engine *e, struct tracker *t, const struct governor_options *opts,
		 struct governor **ret);
/* Waits for probes that are on their way out. Before the tracker is freed. */
void governor_free(struct governor *g);

/* Other limits from now on, as in governor_options. */
void governor_set_limits(struct governor *g, double max_share, double max_host_share);

/* Do what is due; call at least when governor_wait_ms() says so. */
int governor_work(struct governor *g);
int governor_wait_ms(const struct governor *g);

/* Take every probe out, and put none in until it is called with false. */
int governor_pause(struct governor *g, bool pause);
bool governor_is_paused(const struct governor *g);
/* No windows any more: the tracker is about to stop. What is known stays. */
void governor_stop(struct governor *g);

struct governor_view {
	enum budget_step step;
	double share; /* of the process's CPU time that probes take, over the last seconds */
	double share_overall; /* since it is followed */
	double limit; /* 0: none */
	uint64_t rate_bytes;
	double duty; /* of the time in which probes are in: 1, but in windows, and 0 when they are out */
	/* In windows, see windows.h; 1 outside of that step: */
	double slowdown, slowdown_low, slowdown_high;
	uint32_t window_cnt; /* so far; 0 also outside of that step */
	double spread; /* relative standard error of what was allocated: of windows and samples */
	size_t step_cnt; /* taken so far */
	uint64_t inuse_ns; /* in-use is of blocks allocated since then; 0: since it is followed */
	bool has_inuse; /* frees are seen now */
};
/* -ENOENT: not followed. With is_one every pid is the same. */
int governor_view(const struct governor *g, pid_t pid, struct governor_view *ret);
/* Share of the time of all CPUs that all probes take. */
double governor_host_share(const struct governor *g);

/* Comments on the budget, the steps and what they mean for the values. pid 0: of all processes. */
int governor_comment(const struct governor *g, pid_t pid, struct profile *p);

/* What these comments say of one process, for a profile that is made after it has ended, or has become
 * another program. */
struct governor_record {
	bool is_known;
	struct governor_view view;
	struct governor_history history;
	uint64_t followed_ns;
};
void governor_take_record(const struct governor *g, pid_t pid, struct governor_record *ret);
int governor_comment_record(const struct governor *g, const struct governor_record *r,
			    struct profile *p);

#endif
