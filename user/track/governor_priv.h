/* SPDX-License-Identifier: MIT */
/* governor_priv.h - parts of governor.c: budgets of processes, their sum, and texts on them. */
#ifndef HT_TRACK_GOVERNOR_PRIV_H
#define HT_TRACK_GOVERNOR_PRIV_H

#include "base/std.h"
#include "base/clock.h"
#include "base/hmap.h"
#include "base/log.h"
#include "base/vec.h"
#include "profile/recording.h"
#include "track/budget.h"
#include "track/governor.h"
#include "track/probes.h"

struct engine;
struct tracker;

/*
 * The unit that has a budget: a process, or all processes of the tracker when they share their probes. It has the cost
 * of the probes, the sampling, and which probes are in.
 */

/* Common to all units. */
struct unit_policy {
	struct engine *engine;
	struct tracker *tracker;
	struct budget_options budget;
};

struct budget_unit {
	const struct unit_policy *policy;
	pid_t pid; /* 0: all processes */
	uint64_t ended_cpu_ns; /* if all: CPU time of ended processes */
	struct budget *budget;
	struct budget_reading begin, now; /* start of the budget, and the last reading */
	enum probes_kept kept;
	uint64_t gone_ticket; /* ticket of the last detaching: see tracker_keep_probes() */
	bool has_inuse; /* frees are seen */
	uint64_t inuse_ns; /* ... since then; 0: since it is followed */
	uint64_t watched_ns; /* time in which allocations were seen, without the present one */
	uint64_t watched_since_ns; /* start of the present one; 0: they are not seen */
	bool was_always_recorded;
};

/* Time in which allocations were seen so far. */
static inline uint64_t budget_unit_watched_ns(const struct budget_unit *u)
{
	return u->watched_ns + (u->watched_since_ns ? now_ns() - u->watched_since_ns : 0);
}

/* A unit that has a budget. */
struct governed {
	struct budget_unit *unit;
	uint32_t generation; /* image that the budget is for */
	bool is_ended;
	bool is_tap_tried; /* of this image */
	bool is_advised; /* its user knows how to measure what is given up */
	/* Time of the next try to put the plan into effect; 0: it is in effect */
	uint64_t retry_ns;
	uint64_t retry_after_ns; /* last wait for that */
	struct governor_history history; /* steps taken */
};

struct governor {
	struct governor_options opts;
	struct unit_policy policy;
	VEC(struct governed) governed;
	struct hmap idx; /* pid -> index in governed */
	uint64_t due_ns; /* time of the next look at all */
	uint64_t host_ns; /* start of the sum host_cost_ns */
	double host_cost_ns;
	double host_factor, host_share;
	bool is_paused, is_stopped, is_measured, is_auto_rate;
	struct auto_rate rate;
	unsigned int measured_cnt; /* up to MEASURED_CNT */
	double measured_ns; /* minimum of these */
	struct log_limit log; /* for steps */
};

/* Index of the unit of a process in governed; NULL: it has none. */
const uint64_t *governor_idx(const struct governor *g, pid_t pid);

/* Sums up the budgets of several processes, for a recording of them all. */

struct governor_tally { /* zeros: no process yet */
	size_t cnt, unknown_cnt; /* number with unknown in-use */
	double cost_ns, cpu_ns;
	bool is_cost_unknown;
	double overhead_one_cpu; /* of the last process */
	double full_share, full_one_cpu; /* of the process with the largest share; 0: of none */
	struct recording_limit limit; /* the largest; both members set: their kinds differ */
	uint64_t inuse_ns; /* the latest; 0: in-use is complete for all */
	uint64_t watched_ns; /* the shortest */
	bool was_not_always_recorded;
};

void governor_tally_add(struct governor_tally *t, const struct governor_view *v);
/* See governor_fill_recording(). */
void governor_tally_fill(const struct governor_tally *t, int64_t epoch_off_ns, struct recording *r);

/*
 * governor_text.c: what the governor did: in words, for the log, and in a profile and its comments.
 */

/* Does the step give something up? */
bool governor_step_is_down(const struct governor_step *step);

#define GOVERNOR_TEXT_CAP 512
/* "after 2.1 s: stopped tracking frees (...): in-use is unknown". has_advice: also say how to know
 * it. Returns buf. */
char *governor_step_words(const struct governor_step *step, bool has_advice, char *buf,
			  size_t buf_bytes);
/* Log the step of that process. The advice is given once. */
void governor_log_step(struct governor *g, struct governed *gd, const struct governor_step *step);

#endif
