/* SPDX-License-Identifier: MIT */
/*
 * budget.h - how much of a process is recorded, so that probing it stays cheap enough.
 *
 * Pure: readings in, a plan out; nothing is attached or measured here (see governor.h). budget.c
 * explains the steps and when they are taken.
 */
#ifndef HT_BUDGET_BUDGET_H
#define HT_BUDGET_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* What is given up, in this order; each step keeps what those before it gave up. */
enum budget_step {
	BUDGET_FULL, /* nothing */
	BUDGET_COARSE, /* precision: fewer samples */
	BUDGET_ALLOCS, /* frees are not seen: no in-use */
	BUDGET_WINDOWS, /* probes are in at random times only */
	BUDGET_OUT, /* nothing is recorded */
};
#define BUDGET_STEP_CNT 5
/* One word each, for metrics and comments: "full", "coarse", "allocs", "windows", "out". */
const char *budget_step_name(enum budget_step step);

/* ns of one hit, as calibrated. */
struct budget_costs {
	double emulated_ns;
	double stepped_ns;
	double return_ns; /* in addition to the entry's */
};

/* Of one process, counted up from anywhere. */
struct budget_reading {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t cpu_ns; /* that all its threads used, probes included */
	uint64_t alloc_cnt, free_cnt, return_cnt; /* hits */
	uint64_t stepped_cnt; /* of allocations and frees */
	uint64_t sample_cnt; /* allocations that were kept */
	uint64_t stack_ns; /* measured: the stacks of those */
};

struct ht_hits;
/* The counters of a reading. */
void budget_reading_set_hits(struct budget_reading *r, const struct ht_hits *hits);
/* The difference of two readings; what the probes took of it. */
struct budget_reading budget_between(const struct budget_reading *from,
				     const struct budget_reading *to);
double budget_cost_ns(const struct budget_costs *costs, const struct budget_reading *diff);

#define BUDGET_COARSE_CAP 3
/* Sampling rate after `coarse` steps: 4 times coarser each, the first at least to 64 KiB. */
uint64_t budget_rate_bytes(uint64_t rate_bytes, uint32_t coarse);

#define BUDGET_FLOOR 0.005 /* of one CPU: less is no concern, whatever share of a process it is */

struct budget_options {
	double max_share; /* of the CPU time of the process; 0: no limit, only measured */
	uint64_t rate_bytes;
	bool has_no_windows; /* taking probes out takes too long for them */
	const struct budget_costs *costs; /* kept by reference: they may become better known */
};

struct budget_plan {
	enum budget_step step;
	uint32_t coarse; /* 0 to BUDGET_COARSE_CAP: see budget_rate_bytes() */
	double duty; /* BUDGET_WINDOWS: share of the time in which probes are in */
};

#define BUDGET_INTERVAL_NS 100000000ULL
#define BUDGET_DUTY_MIN 0.001
#define BUDGET_DUTY_MAX 0.5

struct budget;
int budget_new(const struct budget_options *opts, const struct budget_reading *start,
	       struct budget **ret);
void budget_free(struct budget *b);

/*
 * To be called about every BUDGET_INTERVAL_NS. factor (0 to 1] makes the limit smaller for a while: what
 * is left when the host has a limit of its own. true: the plan has changed, and is to be put into
 * effect at once.
 */
bool budget_update(struct budget *b, const struct budget_reading *now, double factor);
/* Another limit from the next update on, as in budget_options. Where there is room for it now, what was given
 * up comes back one step after the other. */
void budget_set_limit(struct budget *b, double max_share);
/*
 * BUDGET_WINDOWS: what was counted in a window, and since the one before, this one included. The duty
 * changes at the next budget_update().
 */
void budget_saw_window(struct budget *b, const struct budget_reading *in,
		       const struct budget_reading *all);
/*
 * The sampling rate that is worth while in windows: there hits are what costs, and few of them are seen.
 * sampled_bytes: the sum of rates over all samples so far, alloc_cnt: of how many allocations. 0 to
 * BUDGET_FINE_CAP: how often to halve rate_bytes.
 */
#define BUDGET_FINE_CAP 16
uint32_t budget_fine(const struct budget_costs *costs, const struct budget_reading *seen,
		     double sampled_bytes, uint64_t rate_bytes);
/* What budget_saw_window() tells of was sampled with this rate. */
void budget_set_window_rate(struct budget *b, uint64_t rate_bytes);

const struct budget_plan *budget_plan(const struct budget *b);
/* Share of the process's CPU time that probes took: over the last seconds, and since the start. */
double budget_share(const struct budget *b);
double budget_share_overall(const struct budget *b);
/* The share that made the last step necessary, or that allowed it. */
double budget_share_at_step(const struct budget *b);
/* Was the last step the kill switch? */
bool budget_was_killed(const struct budget *b);

/*
 * The host's limit, next value of the factor: all limits shrink by what is too much at once, and
 * grow again slowly. To be called once a second, with the cost and the CPU time of that second: steps that
 * were taken meanwhile must show in it. max_share 0: no limit.
 */
double budget_host_factor(double factor, double cost_ns, double host_cpu_ns, double max_share);

#endif
