/* SPDX-License-Identifier: MIT */
/*
 * rules.h - when a profile is saved, and which one is removed when there are too many. Pure.
 *
 * Three rules keep the cost low. A new peak is saved only when in-use has grown by KEEP_GROWTH over the saved one.
 * A process that grows all the time is checked after 1, 2, 4, 8 and then every 10 s (struct saved_pace), so that a
 * burst is caught soon and a leak costs little. And after a batch of profiles there is a rest, some times as long as
 * the CPU time that it took: 5 times before a death by a signal, which nothing else tells of, 10 times before another
 * end or a nearly reached limit, 32 times before a peak. So peaks take at most 3 % of one CPU.
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

/* What a profile tells of, by worth. */
enum saved_class { KEEP_DEATH, KEEP_NEAR_LIMIT, KEEP_ENDED, KEEP_AT_PEAK };
/* The last batch; all 0: there was none. */
struct saved_rest {
	uint64_t took_ns, end_ns;
};
bool saved_rest_is_over(const struct saved_rest *r, uint64_t now_ns, enum saved_class of);

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
