/* SPDX-License-Identifier: MIT */
/*
 * past.h - what processes held in the last hour and the last day: each stack, each process, and resident memory by row.
 * Pure, and bounded.
 *
 * An image is {tgid, generation} of one process between two execs, as in struct history_key: a process that gets the pid
 * of an ended one has a past of its own, and so has another program of a process.
 */
#ifndef HT_HTTP_PAST_H
#define HT_HTTP_PAST_H

#include "base/std.h"
#include "base/clock.h"
#include "explain/rows.h"
#include "profile/estimate.h"
#include "profile/history.h"
#include "profile/resident_rows.h"

/* stack_past.c: what stacks held: whether they grow, and what changed between two moments. */

#define STACK_PAST_NS (24 * 3600 * 1000000000ULL) /* older data is forgotten */
#define STACK_PAST_MOMENTS_CAP 240
/* Most entries in all: 6 MiB. While a moment is read, as much again, or twice, is needed. */
#define STACK_PAST_ENTRIES_CAP (3 << 16)
#define STACK_PAST_ENTRY_BYTES 32
#define STACK_PAST_IMAGES_CAP 512
/* The "stack" of everything that is in none of the kept stacks. */
#define STACK_PAST_REST UINT64_MAX

struct stack_past;

struct stack_past_moment {
	uint64_t time_ns; /* on the samples' clock, which never goes back */
	int64_t epoch_ns; /* the same on the wall clock */
};

/* interval_ns: between moments, unless reading them is expensive. */
int stack_past_new(uint64_t interval_ns, struct stack_past **ret);
void stack_past_free(struct stack_past *p);

/* When the next moment is due; 0: at once. */
uint64_t stack_past_due_ns(const struct stack_past *p);
/* Begin a moment: then name the images, add all samples that are live, and end it. time_ns: before the first sample
 * was read, and later than the previous moment. */
void stack_past_begin(struct stack_past *p, const struct stack_past_moment *now);
/* Name an image whose in-use is known, and since when: with another since_ns its past begins anew. 0, -ENOMEM;
 * -ENOSPC: too many images. */
int stack_past_name_image(struct stack_past *p, uint64_t image, uint64_t since_ns);
/* Add a sample. Left out are samples of images that were not named, and those allocated after the moment began. 0
 * or -ENOMEM. */
int stack_past_add(struct stack_past *p, const struct history_key *key, uint64_t alloc_ns,
		   uint64_t size_bytes, double probability);
/* End the moment; images that were not named are forgotten. took_ns: CPU time of reading. 0; -ENOMEM: all is
 * forgotten. */
int stack_past_end(struct stack_past *p, uint64_t took_ns);
/* Forget all that was before. */
void stack_past_forget(struct stack_past *p);

/* The moments at which something is known of that image, the oldest first. Return their number. */
size_t stack_past_moments(const struct stack_past *p, uint64_t image,
			  const struct stack_past_moment **ret);
/* Is there no room for one more image? */
bool stack_past_is_full(const struct stack_past *p);
/*
 * Make a finished history of the moments from from_ns on, with those stacks that are known at all of them; the
 * caller frees it. ret_is_partial: there are other stacks. -ENOENT: there are no moments.
 */
int stack_past_history(const struct stack_past *p, uint64_t image, uint64_t from_ns,
		       struct history **ret, bool *ret_is_partial);
/*
 * Report what each stack held at two moments (indexes in stack_past_moments()). The variances cover only what is in
 * one of the two: the rest is the same in the difference. With the same moment twice they cover all that it held, and
 * so do those of STACK_PAST_REST, which are too large rather than too small. rate_bytes and the variance of objects
 * are left 0.
 */
typedef int (*stack_past_pair_fn)(void *ctx, const struct history_key *key,
				  const struct estimate at[2]);
int stack_past_compare(const struct stack_past *p, uint64_t image, size_t before, size_t after,
		       stack_past_pair_fn fn, void *ctx);
/* Bytes of memory in use. */
size_t stack_past_bytes(const struct stack_past *p);

/*
 * inuse_past.c: what each process held, and its resident memory: every ten seconds of the last hour, and the maximum
 * of each five minutes of the last day. Pure, and bounded: INUSE_PAST_PROCESS_BYTES for each process, at most
 * INUSE_PAST_PROCESSES_CAP of them.
 */

#define INUSE_PAST_STEP_S 10
#define INUSE_PAST_HOUR_CNT 360
#define INUSE_PAST_DAY_STEPS 30 /* steps in one point of the day */
#define INUSE_PAST_DAY_CNT 288
#define INUSE_PAST_PROCESSES_CAP 4096 /* as many as are followed */
#define INUSE_PAST_PROCESS_BYTES \
	(4 * INUSE_PAST_LINE_CNT * (INUSE_PAST_HOUR_CNT + INUSE_PAST_DAY_CNT) + 32)

enum inuse_past_line { INUSE_PAST_INUSE, INUSE_PAST_RESIDENT, INUSE_PAST_LINE_CNT };

struct inuse_past;

int inuse_past_new(struct inuse_past **ret);
void inuse_past_free(struct inuse_past *p);

/* Begin a moment; time_ns never goes back. false: too soon after the previous moment, none has begun. */
bool inuse_past_begin(struct inuse_past *p, uint64_t time_ns);
/*
 * Add what a process holds. since_ns: when following it began; another since_ns (the pid was reused, or is followed
 * again) begins a new past, an exec does not. bytes: by line; NAN: not known. 0, -ENOMEM; -ENOSPC: there are too many
 * processes, and this one has no past.
 */
int inuse_past_add(struct inuse_past *p, pid_t pid, uint64_t since_ns,
		   const double bytes[static INUSE_PAST_LINE_CNT]);
/* Is there no room for one more? */
bool inuse_past_is_full(const struct inuse_past *p);
/* End the moment; processes that were not added are forgotten. */
void inuse_past_end(struct inuse_past *p);

/* The time of the last moment; 0: there was none. */
uint64_t inuse_past_time_ns(const struct inuse_past *p);
/* The points of a process, the oldest first, at the intervals above, NAN where not known; the last one is of the
 * last moment. Return their number; 0: it has no past. */
size_t inuse_past_hour(const struct inuse_past *p, pid_t pid, enum inuse_past_line line,
		       float ret[static INUSE_PAST_HOUR_CNT]);
size_t inuse_past_day(const struct inuse_past *p, pid_t pid, enum inuse_past_line line,
		      float ret[static INUSE_PAST_DAY_CNT]);

/*
 * Whether a process holds more and more, from the line of what it held. Pure.
 *
 * The time that is known is cut into quarters. The last one is compared with the first; what differs by less than the
 * line's own ups and downs, or than sampling may err, is no growth. It "grew" when it has been flat since: a program
 * that warmed up. Which stacks grow, and with what certainty, is another question: profile/growth.h.
 */

#define INUSE_GROWTH_POINTS_LEAST 12 /* with fewer nothing is said */

enum inuse_trend {
	INUSE_TREND_UNKNOWN,
	INUSE_TREND_GROWS,
	INUSE_TREND_GREW,
	INUSE_TREND_STEADY,
	INUSE_TREND_SHRINKS,
};

struct inuse_growth {
	enum inuse_trend trend;
	double bytes_per_min; /* with a trend that is known */
	double minutes; /* between the first and the last known value */
};

/* values: step_s apart, the oldest first, NAN where not known. error_bytes: standard error of what is in use now. */
void inuse_growth(const float *values, size_t cnt, double step_s, double error_bytes,
		  struct inuse_growth *ret);
/* "grows", "grew", "steady", "shrinks"; unknown: NULL. */
const char *inuse_trend_text(enum inuse_trend trend);

/*
 * rows_past.c: what was resident of each process, by row: in each reading of the last hour, and in the largest of each 15
 * minutes of the last day. Pure, and bounded: some 20 KiB for each of at most ROWS_PAST_IMAGES_CAP images.
 * What an ended image had is kept for a while, for the profile that is saved of it.
 */

#define ROWS_PAST_IMAGES_CAP 512
#define ROWS_PAST_HOUR_NS (3600 * NS_PER_S)
#define ROWS_PAST_HOUR_CNT 60
#define ROWS_PAST_DAY_NS (24 * ROWS_PAST_HOUR_NS)
#define ROWS_PAST_DAY_STEP_NS (900 * NS_PER_S)
#define ROWS_PAST_DAY_CNT 96
#define ROWS_PAST_ENDED_NS (30 * NS_PER_S)

/* One reading. NAN in all rows: it failed. */
struct rows_past_point {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	float rows[ROW_CNT]; /* bytes, by enum row_kind */
};

struct rows_past_image {
	/* The first and the newest one that is known; the times are 0: there was none. */
	struct resident_reading first, last;
	uint64_t first_ns, last_ns;
	char why[RESIDENT_WHY_BYTES]; /* the newest attempt failed; "": it did not */
	uint32_t seen; /* 1 << each row that was not 0 at some time */
	uint64_t due_ns; /* the next reading */
	uint64_t kept_ns; /* it was followed until then, at least */
	struct rows_past_point hour[ROWS_PAST_HOUR_CNT],
		day[ROWS_PAST_DAY_CNT]; /* the oldest first */
	size_t hour_cnt, day_cnt;
};
_Static_assert(ROW_CNT <= 32, "a bit for each row");

struct rows_past;

int rows_past_new(struct rows_past **ret);
void rows_past_free(struct rows_past *p);

/* Add a reading, or an attempt that failed. time_ns never goes back. 0, -ENOMEM; -ENOSPC: there are too many images;
 * -EINVAL: it has a row that there is not, and counts as failed. */
int rows_past_add(struct rows_past *p, uint64_t image, uint64_t time_ns, uint64_t due_ns,
		  const struct resident_reading *r);
/* Valid until the next add or forget. NULL: it was never looked at. */
const struct rows_past_image *rows_past_find(const struct rows_past *p, uint64_t image);
/* Of the newest one that is known; the points are rounded. */
int64_t rows_past_bytes(const struct rows_past_image *i, enum row_kind kind);
bool rows_past_is_full(const struct rows_past *p);
/* It is followed now. */
void rows_past_keep(struct rows_past *p, uint64_t image, uint64_t now_ns);
/* Forget images that were not kept for ROWS_PAST_ENDED_NS. */
void rows_past_forget(struct rows_past *p, uint64_t now_ns);

/* Is the newest attempt known? Then `last` is of it. */
static inline bool rows_past_is_known(const struct rows_past_image *i)
{
	return i && i->last_ns && !i->why[0];
}

#endif
