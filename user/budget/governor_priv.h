/* SPDX-License-Identifier: MIT */
/* governor_priv.h - what governor.c is made of: budgets of processes, their sum, and what is said of it. */
#ifndef HT_BUDGET_GOVERNOR_PRIV_H
#define HT_BUDGET_GOVERNOR_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "budget/budget.h"
#include "budget/governor_record.h"
#include "profile/recording.h"
#include "track/probes_kept.h"

struct engine;
struct engine_change;
struct governor_view;
struct profile;
struct tracker;

/*
 * budget_unit.c: what one budget is given to: a process, or all processes of the tracker when they share
 * their probes. What its probes cost, how it is sampled, and which of its probes are in.
 */

/* What all units have in common. */
struct unit_policy {
	struct engine *engine;
	struct tracker *tracker;
	struct budget_options budget;
};

struct budget_unit {
	const struct unit_policy *policy;
	pid_t pid; /* 0: all */
	uint64_t ended_cpu_ns; /* of all: of processes that have ended */
	struct budget *budget;
	struct budget_reading begin, now; /* since when the budget counts, and as last read */
	enum probes_kept kept;
	uint64_t gone_ticket; /* of the probes that went last: see tracker_keep_probes() */
	bool has_inuse; /* frees are seen */
	uint64_t inuse_ns; /* since when; 0: since it is followed */
	uint64_t watched_ns; /* for how long allocations were seen, until they were not */
	uint64_t watched_since_ns; /* and since when they are again; 0: they are not */
	bool was_always_watched;
};

/* With a first reading, and a budget that counts from when the process was followed. policy must outlive it.
 * is_watched: its probes are in. -ENOMEM, or why it cannot be read: it has ended. */
int budget_unit_new(const struct unit_policy *policy, pid_t pid, bool is_watched,
		    struct budget_unit **ret);
/* NULL is fine. */
void budget_unit_free(struct budget_unit *u);
/* Another image: its budget counts from the last reading on, as if nothing were known of it. -ENOMEM. */
int budget_unit_renew(struct budget_unit *u);

/* Its processes that run. */
size_t budget_unit_pid_cnt(const struct budget_unit *u);
pid_t budget_unit_pid_at(const struct budget_unit *u, size_t i);

/* A reading of this moment; u->now is set by the caller. */
int budget_unit_read(struct budget_unit *u, struct budget_reading *ret);
/* With hits that were just read. */
int budget_unit_read_clocks(struct budget_unit *u, const struct ht_hits *hits,
			    struct budget_reading *ret);
/* What its probes took of the difference of two readings: not more than all of its CPU time. */
double budget_unit_cost_ns(const struct budget_unit *u, const struct budget_reading *diff);

/* How it is sampled from now on. Who has ended is no error. */
int budget_unit_change(const struct budget_unit *u, const struct engine_change *change);
/* Everything that is allocated from now on is seen to its end: sets change->is_alloc_only too. */
int budget_unit_see_frees(struct budget_unit *u, struct engine_change *change);
/* Frees are not seen any more: what is outstanding is dropped. Those probes stay that `kept` says, the
 * others go while nobody waits. */
int budget_unit_leave_frees(struct budget_unit *u, enum probes_kept kept,
			    const struct engine_change *change);
/* For how long allocations were seen so far. */
uint64_t budget_unit_watched_ns(const struct budget_unit *u);

/*
 * governor_tally.c: what the budgets of several processes say of a recording of them all.
 */

struct governor_tally { /* zeros: nobody yet */
	size_t cnt, unknown_cnt; /* of these in-use is not known */
	double cost_ns, cpu_ns;
	bool is_cost_unknown;
	double overhead_one_cpu; /* of the last one */
	double full_share, full_one_cpu; /* the largest share, and of whom that is; 0: of nobody */
	struct recording_limit limit; /* each one's, if they are not of one kind both */
	uint64_t inuse_ns; /* the latest; 0: of all of them everything */
	uint64_t watched_ns; /* the least */
	bool was_not_always_watched;
};

void governor_tally_add(struct governor_tally *t, const struct governor_view *v);
/* See governor_fill_recording(). */
void governor_tally_fill(const struct governor_tally *t, int64_t epoch_off_ns, struct recording *r);

/*
 * governor_text.c: what the governor did, in words: for the log, and as comments of a profile.
 */

/* Is something given up? */
bool governor_step_is_down(const struct governor_step *step);
void governor_history_add(struct governor_history *h, const struct governor_step *step);

#define GOVERNOR_TEXT_CAP 512
/* "after 2.1 s: stopped watching frees (...): in-use is unknown". has_advice: and by what it is known.
 * Returns buf. */
char *governor_step_words(const struct governor_step *step, bool has_advice, char *buf,
			  size_t buf_bytes);

/* What a process cost, and the steps. pid 0: all that the profile
 * is of. */
int governor_comment_unit(struct profile *p, pid_t pid, const struct governor_record *r);

#endif
