/* SPDX-License-Identifier: MIT */
/*
 * extents.h - a range of numbers, given out in runs and taken back.
 *
 * First fit; a returned run merges with free neighbours. For places in arrays that other code reads by index: rows,
 * pages. Its own file because it is an algorithm, tested alone.
 */
#ifndef HT_BASE_EXTENTS_H
#define HT_BASE_EXTENTS_H

#include "base/std.h"
#include "base/vec.h"

struct extent {
	uint32_t first, cnt;
};

struct extents {
	VEC(struct extent) free; /* sorted; between two of them something is always in use */
};

/* Begin with the numbers first to first + cnt - 1, all free. 0 or -ENOMEM. */
int extents_init(struct extents *x, uint32_t first, uint32_t cnt);
void extents_release(struct extents *x);
/* Take cnt consecutive numbers, cnt > 0; -ENOSPC: there is no such run. */
int extents_take(struct extents *x, uint32_t cnt, uint32_t *ret_first);
/* Return numbers from extents_take(), all or a part. -ENOMEM: they stay in use. */
int extents_give(struct extents *x, uint32_t first, uint32_t cnt);
uint32_t extents_free_cnt(const struct extents *x); /* for tests */

#endif
