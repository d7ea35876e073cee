/* SPDX-License-Identifier: MIT */
/*
 * budget.h - how much of a process is recorded, so that probing it stays cheap enough.
 *
 * Pure: from readings to a plan. Attaches and measures nothing (see governor.h). budget.c explains
 * the steps and when they are taken.
 */
#ifndef HT_TRACK_BUDGET_H
#define HT_TRACK_BUDGET_H

#include "base/std.h"
#include "profile/recording.h"

/* What is given up; metrics show the number. */
enum budget_step {
	BUDGET_FULL, /* nothing */
	BUDGET_COARSE, /* precision: fewer samples */
	BUDGET_ALLOCS, /* frees are not watched: in-use is not known */
	BUDGET_OFF, /* nothing is recorded */
};
#define BUDGET_STEP_CNT 4
/* One word each: "full", "coarse", "allocs", "off". */
const char *budget_step_name(enum budget_step step);

/* ns per hit, as calibrated. */
struct budget_costs {
	double emulated_ns;
	double stepped_ns;
	double return_ns; /* in addition to the entry's */
};

/* Counters of one process, from any starting value. */
struct budget_reading {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t cpu_ns; /* of all its threads, probes included */
	uint64_t alloc_cnt, free_cnt, return_cnt; /* hits */
	uint64_t stepped_cnt; /* single-stepped hits on allocations and frees */
	uint64_t sample_cnt; /* allocations kept */
	uint64_t stack_ns; /* measured time for the stacks of these */
};

struct ht_hits;
/* Set the counters of a reading. */
void budget_reading_set_hits(struct budget_reading *r, const struct ht_hits *hits);
/* The difference of two readings, and what probes took of it. */
struct budget_reading budget_between(const struct budget_reading *from,
				     const struct budget_reading *to);
double budget_cost_ns(const struct budget_costs *costs, const struct budget_reading *diff);

#define BUDGET_COARSE_CAP 3
/* Sampling rate after `coarse` steps: each is 4 times coarser, the first is at least 64 KiB. */
uint64_t budget_rate_bytes(uint64_t rate_bytes, uint32_t coarse);

#define BUDGET_NO_LIMIT ((struct recording_limit){ 0, 0 })
bool budget_has_limit(const struct recording_limit *limit);
/* What probes may take of this CPU and wall time; infinite without a limit. */
double budget_allowed_ns(const struct recording_limit *limit, double cpu_ns, double wall_ns);

struct budget_options {
	struct recording_limit limit;
	uint64_t rate_bytes;
	const struct budget_costs *costs; /* referenced, because they may become better known */
};

struct budget_plan {
	enum budget_step step;
	uint32_t coarse; /* 0 to BUDGET_COARSE_CAP: see budget_rate_bytes() */
	bool is_trial; /* BUDGET_ALLOCS for a moment, to see whether BUDGET_OFF is still needed */
};

/* A cost as shares of the process's CPU time, and of one CPU. */
struct budget_price {
	double cpu_share, one_cpu;
};

/* Why the last step was taken. */
struct budget_verdict {
	struct budget_price before; /* of what was done before */
	struct budget_price full, allocs; /* of these steps, measured or predicted */
	struct recording_limit limit; /* the limits in force */
	struct recording_limit
		given; /* the same before they were reduced for the limit of the host */
	bool is_of_one_cpu; /* limit.one_cpu applied, being more than the share */
	bool is_kill;
	uint64_t retry_ns; /* BUDGET_OFF: time until the next trial */
};

#define BUDGET_INTERVAL_NS 100000000ULL
#define BUDGET_KILL_SHARE 0.8 /* of the CPU time of the process */
#define BUDGET_KILL_CNT 4 /* intervals in a row */

struct budget;
int budget_new(const struct budget_options *opts, const struct budget_reading *start,
	       struct budget **ret);
void budget_free(struct budget *b);

/*
 * Call about every BUDGET_INTERVAL_NS. factor (0 to 1] reduces the limit for a while, when the host
 * has a limit of its own. true: the plan has changed, and must take effect at once.
 */
bool budget_update(struct budget *b, const struct budget_reading *now, double factor);
/* The plan took effect at `now`. Earlier hits count as cost, but decide nothing. */
void budget_applied(struct budget *b, const struct budget_reading *now);
/* Count the hits since the last update: this is the last one. */
void budget_end(struct budget *b, const struct budget_reading *now);
/*
 * While held, a process that is fully recorded stays so. Somebody else bounds its cost, by the
 * limit of budget_limit().
 */
void budget_hold(struct budget *b, bool is_held);
const struct recording_limit *budget_limit(const struct budget *b);
/* Do the probes cost more than this share of its CPU time, over a moment of work? */
bool budget_costs(const struct budget *b, double share);
/* Nothing is given up any more, whatever the last update said: the process is seen in another way from now on. */
void budget_restart(struct budget *b);
/* Change the rate of step `full`; coarser steps follow it. */
void budget_set_rate(struct budget *b, uint64_t rate_bytes);
/* Change the limit from the next update on. If it leaves room, what was given up comes back. */
void budget_set_limit(struct budget *b, const struct recording_limit *limit);

const struct budget_plan *budget_plan(const struct budget *b);
const struct budget_verdict *budget_verdict(const struct budget *b);
/* The one limit that applies, or that applied to the last step; the other member is 0. */
struct recording_limit budget_limit_in_force(const struct budget *b);
/* Cost of the probes: in the last seconds, and since the start (NAN: no CPU time). */
struct budget_price budget_now(const struct budget *b);
struct budget_price budget_overall(const struct budget *b);
/* Cost since the first BUDGET_SETTLE_NS, in which the fitting step is found. NAN: nothing yet. */
#define BUDGET_SETTLE_NS 4000000000ULL
struct budget_price budget_settled(const struct budget *b);
/* Cost of recording everything at the present rate of allocations; NAN: everything is recorded. */
struct budget_price budget_full(const struct budget *b);
#define BUDGET_PRICE_UNKNOWN ((struct budget_price){ NAN, NAN })

/*
 * Next value of the factor, for the host's limit: all limits shrink by what is too much at once,
 * and grow again slowly. Call once a second with the cost and CPU time of that second, so that
 * steps taken in it show. max_share 0: no limit.
 */
double budget_host_factor(double factor, double cost_ns, double host_cpu_ns, double max_share);

/*
 * auto_rate in governor.c: how finely `heaptap record` samples by default: as finely as costs next to nothing.
 *
 * A sample costs its process some microseconds, so AUTO_RATE_PER_S of them cost some tenths of a
 * percent of a CPU. A program that allocates little is therefore sampled more finely than every
 * AUTO_RATE_USUAL bytes, so that what it holds is known better: a leak of 10 KiB a second gives 5
 * samples in 30 seconds at 64 KiB, and 40 at 8 KiB. Each sample keeps the probability that it was
 * drawn with, so numbers keep their meaning when the rate changes.
 *
 * Pure.
 */
#define AUTO_RATE_FINEST (4ULL << 10)
#define AUTO_RATE_USUAL (64ULL << 10)
#define AUTO_RATE_PER_S 500.0
/* Total number of samples from which on fewer are taken. The map of live samples holds four times as many. */
#define AUTO_RATE_PLENTY 250000

struct auto_rate {
	uint64_t rate_bytes;
	uint64_t begin_ns;
	uint64_t seen_ns, changed_ns, burst_ns; /* times of the last look, change, and burst */
	uint64_t sample_cnt;
	double cnt, wall_ns; /* recent samples, and their time */
	double ns_per_byte; /* sum of time divided by the rate in that time */
};

void auto_rate_begin(struct auto_rate *a, uint64_t now_ns);
/*
 * sample_cnt: so far; it may fall when a process executes another program. may_be_fine: nothing is
 * given up for the overhead limit. true: rate_bytes has changed.
 */
bool auto_rate_update(struct auto_rate *a, uint64_t now_ns, uint64_t sample_cnt, bool may_be_fine);
/* The constant rate that would give as many samples of an even stream of allocations. */
uint64_t auto_rate_mean(const struct auto_rate *a);

#endif
