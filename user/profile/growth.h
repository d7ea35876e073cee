/* SPDX-License-Identifier: MIT */
/*
 * growth.h - whether what is in use grows, and how fast: from lives (history.h) to a rate with its
 * 95 % interval and a verdict.
 *
 * The recording is cut into twelve windows of the same length. What a row held in a window is the mean of
 * its moments. The rate is what it held in the last four windows minus what it held in the third to the
 * sixth, per second between the middles of both. The first two are left out: programs warm up.
 */
#ifndef HT_PROFILE_GROWTH_H
#define HT_PROFILE_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct history_life;

#define GROWTH_WINDOW_CNT 12
/* Fewer moments say nothing. */
#define GROWTH_MOMENTS_LEAST 12
#define GROWTH_MOMENTS_CAP 256
#define GROWTH_STEP_CNT (GROWTH_WINDOW_CNT - 3)

/* The moments of a recording, cut into windows. */
struct growth_plan {
	bool is_known; /* there are moments in each window */
	size_t moment_cnt;
	double duration_s;
	double rate_bytes; /* one sample per that many; <= 1: all allocations */
	double time_s[GROWTH_WINDOW_CNT]; /* of a window: the mean of its moments */
	double tail_part; /* of the time between the middles of both: that between windows 9, 10 and 11, 12 */
	uint32_t moment_first[GROWTH_WINDOW_CNT + 1]; /* of a window; the last: moment_cnt */
};

/*
 * moment_ns: since the begin, in ascending order. Only what is between from_ns and to_ns counts: in-use may
 * not have been known before.
 */
void growth_plan_init(struct growth_plan *p, const int64_t *moment_ns, size_t cnt, int64_t from_ns,
		      int64_t to_ns, double rate_bytes);

struct growth_part {
	uint64_t samples;
	double bytes, variance;
	double share_max; /* the largest part of itself that one of the samples counts with */
};

/* Of one row. Sums of independent samples: rows can be added up. Zero: it held nothing at any moment. */
struct growth_sums {
	bool is_partial; /* something that it holds is in no life: nothing can be said */
	double mean_bytes[GROWTH_WINDOW_CNT];
	/* Of a window's mean minus that of the one before, from the fourth window on. */
	double step_variance[GROWTH_STEP_CNT];
	/* What windows 9 to 12 have more, and less, than windows 3 to 6; than windows 5 to 8. */
	struct growth_part up, down, late_up, late_down;
	/* What it gained since windows 7 and 8, minus what it had gained until then. */
	double bend_bytes, bend_variance;
	/* What windows 11 and 12 have more than 9 and 10, and that minus what the line through all gains in that time. */
	double tail_bytes, flat_bytes, flat_variance;
	/* Allocated in the first third and live at two thirds; freed since. */
	struct growth_part old, old_gone;
};

void growth_add(const struct growth_plan *p, struct growth_sums *sums,
		const struct history_life *life);
void growth_merge(struct growth_sums *sums, const struct growth_sums *other);

enum growth_verdict { GROWTH_UNKNOWN, GROWTH_GROWS, GROWTH_STEADY };

struct growth {
	enum growth_verdict verdict;
	bool has_rate;
	bool is_late; /* the rate is of the second half: it was another one before */
	double bytes_per_s, low, high; /* 95 % */
	/* With GROWTH_UNKNOWN: a recording that is longer by so much would probably tell. */
	double more_s;
};

/*
 * row_cnt: in how many rows growth is looked for when one of them is to be named. With 1, at most one
 * row in 40 that does not grow is said to. With more, at most one set of so many rows in 300 has such a row.
 */
void growth_judge(const struct growth_plan *p, const struct growth_sums *sums, size_t row_cnt,
		  struct growth *ret);

enum growth_side { GROWTH_SIDE_UNKNOWN, GROWTH_WITHIN, GROWTH_BEYOND };

/* Growth against a limit. */
struct growth_limit {
	enum growth_side side;
	bool has_rate;
	bool slows; /* it grows beyond the limit, and ever less: it may be that it only warms up */
	bool is_replaced; /* likewise, and what is old is freed: it may be that it only fills up */
	double bytes_per_s, low, high; /* at least, at most: each is wrong with the chance tail */
	/* With GROWTH_SIDE_UNKNOWN: a recording that is longer by so much would probably tell; 0: none that is not
	 * twenty times as long. */
	double more_s;
};

/*
 * sums: of all; staying: of those rows of it of which growth_old_goes() is false. Of the two claims, within and beyond,
 * at most a part `tail` is wrong.
 */
void growth_compare(const struct growth_plan *p, const struct growth_sums *sums,
		    const struct growth_sums *staying, double limit_bytes_per_s, double tail,
		    struct growth_limit *ret);
/* Of the blocks of its first third too many were freed since: it is replaced, and not only added to. */
bool growth_old_goes(const struct growth_sums *sums);

#endif
