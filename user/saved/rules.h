/* SPDX-License-Identifier: MIT */
/*
 * rules.h - when a profile is saved, and which one is removed when there are too many. Pure.
 *
 * Three bounds keep the cost low. A new peak is saved only when in-use has grown by KEEP_GROWTH over the saved one.
 * A process that grows all the time is checked after 1, 2, 4, 8 and then every 10 s (struct saved_pace), so that a
 * burst is caught soon and a leak costs little. And all of it together may use KEEP_CPU_SHARE of one CPU (struct
 * saved_credit), with some seconds of credit at the start. Evidence is taken at once, and may run into debt: a
 * nearly reached limit up to KEEP_DEBT_LIMIT_NS; a death by a signal up to KEEP_DEBT_MAX_NS, so that many processes
 * near a limit leave something for those that it kills in the end.
 */
#ifndef HT_SAVED_RULES_H
#define HT_SAVED_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

#define KEEP_GROWTH 0.05
#define KEEP_PACE_MIN_NS (1 * NS_PER_S)
#define KEEP_PACE_MAX_NS (10 * NS_PER_S)
#define KEEP_CPU_SHARE 0.03
#define KEEP_CREDIT_MAX_NS (2 * NS_PER_S)
#define KEEP_DEBT_LIMIT_NS (3 * NS_PER_S)
#define KEEP_DEBT_MAX_NS (10 * NS_PER_S)
/* A cgroup counts as near its limit again only after its use fell by this share of the limit. */
#define KEEP_LIMIT_SLACK 0.05

/* Has in-use grown enough since the saved profile? Growth of two samples' worth may be noise. */
bool saved_has_grown(double inuse_bytes, double kept_bytes, uint64_t rate_bytes);

/* How often a profile of one process may be taken; all 0 at first. */
struct saved_pace {
	uint64_t taken_ns, interval_ns;
};
bool saved_pace_allows(const struct saved_pace *p, uint64_t now_ns);
void saved_pace_take(struct saved_pace *p, uint64_t now_ns);

/* CPU time that may be spent. */
struct saved_credit {
	int64_t left_ns;
	uint64_t filled_ns; /* when it was last filled up */
};
void saved_credit_init(struct saved_credit *c, uint64_t now_ns);
/* How urgently a profile is needed. */
enum saved_need { KEEP_NEED_CALM, KEEP_NEED_LIMIT, KEEP_NEED_DEATH };
bool saved_credit_is_left(struct saved_credit *c, uint64_t now_ns, enum saved_need need);
void saved_credit_spend(struct saved_credit *c, uint64_t cpu_ns);

/* State of a cgroup near its limit: `is_near` is set once it is, until use has fallen again. limit_bytes 0: none. */
struct saved_limit {
	bool is_near;
	uint64_t event_cnt; /* events seen so far */
	bool has_events;
};
/* true: it has just come near, or the kernel has reported new events; share as in 0.9. */
bool saved_limit_reached(struct saved_limit *l, uint64_t used_bytes, uint64_t limit_bytes,
			 uint64_t event_cnt, double share);

/*
 * What is removed first: profiles of processes that ended well, then those that may be evidence, then those of
 * running processes; the oldest first within a kind.
 */
enum saved_rank { KEEP_RANK_ENDED_WELL, KEEP_RANK_ENDED, KEEP_RANK_RUNS };
struct saved_candidate {
	enum saved_rank rank;
	int64_t taken_epoch_ms;
	size_t idx; /* the caller's */
};
/* For qsort(): what is removed first comes first. */
int saved_candidate_order(const void *a, const void *b);

#endif
