/* SPDX-License-Identifier: MIT */
/*
 * growth.h - whether memory in use grows, and how fast: from lives (history.h) to a rate with its 95 % interval and a
 * verdict.
 *
 * The recording is cut into twelve windows of equal length. A row's bytes in a window are the mean over the moments of
 * that window. The rate is the mean of the last four windows minus the mean of windows 3 to 6, divided by the seconds
 * between the middles of both. Windows 1 and 2 are left out: programs warm up.
 */
#ifndef HT_PROFILE_GROWTH_H
#define HT_PROFILE_GROWTH_H

#include "base/std.h"

struct history_life;

#define GROWTH_WINDOW_CNT 12
/* With fewer moments nothing can be said. */
#define GROWTH_MOMENTS_LEAST 12
#define GROWTH_MOMENTS_CAP 256
#define GROWTH_STEP_CNT (GROWTH_WINDOW_CNT - 3)

/* The moments of a recording, cut into windows. */
struct growth_plan {
	bool is_known; /* each window has moments */
	size_t moment_cnt;
	double duration_s;
	double rate_bytes; /* bytes for which one sample is drawn; <= 1: every allocation */
	double time_s[GROWTH_WINDOW_CNT]; /* of each window: the mean time of its moments */
	/* Of the time that the rate is taken over: the part between the middles of windows 9, 10 and 11, 12. */
	double tail_part;
	uint32_t moment_first[GROWTH_WINDOW_CNT + 1]; /* of each window; last entry: moment_cnt */
};

/*
 * moment_ns: since the begin of the recording, ascending. Only moments from from_ns to to_ns count: before,
 * in-use may not have been known.
 */
void growth_plan_init(struct growth_plan *p, const int64_t *moment_ns, size_t cnt, int64_t from_ns,
		      int64_t to_ns, double rate_bytes);

struct growth_part {
	uint64_t samples;
	double bytes, variance;
	double share_max; /* largest part of its weight that a sample counts with: c in growth.c */
};

/* Sums of one row, over independent samples, so rows can be added up. All zero: the row held nothing at any moment. */
struct growth_sums {
	bool is_partial; /* a part of the row's samples has no lives: nothing can be said */
	double mean_bytes[GROWTH_WINDOW_CNT];
	/* From the fourth window on: variance of the window's mean minus that of the window before. */
	double step_variance[GROWTH_STEP_CNT];
	/* Bytes that windows 9 to 12 have more, and less, than windows 3 to 6; late_*: than windows 5 to 8. */
	struct growth_part up, down, late_up, late_down;
	/* The row's gain since windows 7 and 8, minus its gain until then. */
	double bend_bytes, bend_variance;
	/* tail: windows 11 and 12 minus 9 and 10. flat: tail minus what the line through all gains in that time. */
	double tail_bytes, flat_bytes, flat_variance;
	/* Allocated in the first third and live at two thirds; old_gone: freed since. */
	struct growth_part old, old_gone;
};

void growth_add(const struct growth_plan *p, struct growth_sums *sums,
		const struct history_life *life);
void growth_merge(struct growth_sums *sums, const struct growth_sums *other);

enum growth_verdict { GROWTH_UNKNOWN, GROWTH_GROWS, GROWTH_STEADY };

struct growth {
	enum growth_verdict verdict;
	bool has_rate;
	bool is_late; /* the rate is that of the second half: before it was another one */
	double bytes_per_s, low, high; /* 95 % */
	/* With GROWTH_UNKNOWN: it grew, but less and less, or its old blocks are freed: it may only warm up. */
	bool has_grown;
	/* With GROWTH_UNKNOWN: a recording longer by this would probably decide. */
	double more_s;
};

/*
 * row_cnt: in how many rows growth is searched for, to name those that grow. False-positive rate: 1/40 for a single row;
 * family-wise 1/300 for several.
 */
void growth_judge(const struct growth_plan *p, const struct growth_sums *sums, size_t row_cnt,
		  struct growth *ret);

enum growth_side { GROWTH_SIDE_UNKNOWN, GROWTH_WITHIN, GROWTH_BEYOND };

/* Growth compared with a limit. */
struct growth_limit {
	enum growth_side side;
	bool has_rate;
	bool slows; /* beyond the limit, but growth slows down: it may only warm up */
	bool is_replaced; /* beyond the limit, but old blocks are freed: it may only fill up */
	double bytes_per_s, low, high; /* bounds; each is wrong with the probability `tail` */
	/* With GROWTH_SIDE_UNKNOWN: a recording longer by this would probably decide; 0: only one that is
	 * twenty times as long or longer. */
	double more_s;
};

/*
 * sums: of all rows; staying: of those among them for which growth_is_replaced() is false. Of the claims, within and
 * beyond, at most a part `tail` is wrong.
 */
void growth_compare(const struct growth_plan *p, const struct growth_sums *sums,
		    const struct growth_sums *staying, double limit_bytes_per_s, double tail,
		    struct growth_limit *ret);
/* Too many of the row's blocks of the first third were freed since: the row is replaced, not only added to. */
bool growth_is_replaced(const struct growth_sums *sums);

#endif
