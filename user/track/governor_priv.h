/* SPDX-License-Identifier: MIT */
/* governor_priv.h - parts of governor.c: budgets of processes, their sum, and texts on them. */
#ifndef HT_TRACK_GOVERNOR_PRIV_H
#define HT_TRACK_GOVERNOR_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "track/budget.h"
#include "track/governor.h"
#include "profile/recording.h"
#include "track/probes.h"

struct engine;
struct engine_change;
struct governor_view;
struct profile;
struct tracker;

/*
 * budget_unit.c: the unit that has a budget: a process, or all processes of the tracker when they
 * share their probes. It has the cost of the probes, the sampling, and which probes are in.
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

/* Make a unit with a first reading; its budget counts since the process is followed. policy must
 * outlive it. is_watched: its probes are in. -ENOMEM, or why it cannot be read: it has ended. */
int budget_unit_new(const struct unit_policy *policy, pid_t pid, bool is_watched,
		    struct budget_unit **ret);
/* NULL is fine. */
void budget_unit_free(struct budget_unit *u);
/* Another image: start a new budget at the last reading, with no knowledge of the old image. -ENOMEM. */
int budget_unit_renew(struct budget_unit *u);

/* Its running processes. */
pid_t budget_unit_pid_at(const struct budget_unit *u, size_t i);

/* Read now. The caller sets u->now. */
int budget_unit_read(struct budget_unit *u, struct budget_reading *ret);
/* The same, with hits that were just read. */
int budget_unit_read_clocks(struct budget_unit *u, const struct ht_hits *hits,
			    struct budget_reading *ret);
/* Cost of its probes between two readings; at most its CPU time. */
double budget_unit_cost_ns(const struct budget_unit *u, const struct budget_reading *diff);

/* See every block that is allocated from now on until it is freed. Also sets change->is_alloc_only. */
int budget_unit_track_frees(struct budget_unit *u, struct engine_change *change);
/* Stop seeing frees, and drop its live samples. Probes of `kept` stay; the others are detached without waiting. */
int budget_unit_untrack_frees(struct budget_unit *u, enum probes_kept kept,
			      const struct engine_change *change);
/* Tap its processes instead of probing them (tracker_tap()). What they have in use stays known, or counts from now where there
 * is no room for it. After an error it is as before. */
int budget_unit_tap(struct budget_unit *u);
/* Time in which allocations were seen so far. */
uint64_t budget_unit_watched_ns(const struct budget_unit *u);

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
 * governor_text.c: what the governor did, in words: for the log, and as comments of a profile.
 */

/* Does the step give something up? */
bool governor_step_is_down(const struct governor_step *step);
void governor_history_add(struct governor_history *h, const struct governor_step *step);

#define GOVERNOR_TEXT_CAP 512
/* "after 2.1 s: stopped tracking frees (...): in-use is unknown". has_advice: also say how to know
 * it. Returns buf. */
char *governor_step_words(const struct governor_step *step, bool has_advice, char *buf,
			  size_t buf_bytes);

/* Comment on the cost of a process, and on its steps. pid 0: of all that the profile covers. */
int governor_comment_unit(struct profile *p, pid_t pid, const struct governor_record *r);

#endif
