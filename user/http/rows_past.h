/* SPDX-License-Identifier: MIT */
/*
 * rows_past.h - what was resident of each process, by row: in each reading of the last hour, and in the largest of each 15
 * minutes of the last day. Pure, and bounded: some 20 KiB for each of at most ROWS_PAST_IMAGES_CAP images.
 *
 * An image is {pid, generation}, as in stack_past.h: another program of a process has a past of its own. What an ended one
 * had is kept for a while, for the profile that is saved of it.
 */
#ifndef HT_HTTP_ROWS_PAST_H
#define HT_HTTP_ROWS_PAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "explain/rows.h"
#include "profile/resident_rows.h"

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
