/* SPDX-License-Identifier: MIT */
/*
 * extents.h - a range of numbers, given out in runs and taken back.
 *
 * First fit; a run that comes back merges with free neighbours. For places in arrays that somebody
 * else reads by index: rows, pages. Its own file because it is an algorithm, tested alone.
 */
#ifndef HT_BASE_EXTENTS_H
#define HT_BASE_EXTENTS_H

#include <stdint.h>

#include "base/vec.h"

struct extent {
	uint32_t first, cnt;
};

struct extents {
	VEC(struct extent) free; /* sorted; between two of them is always something in use */
};

/* The numbers first to first + cnt - 1, all free. 0 or -ENOMEM. */
int extents_init(struct extents *x, uint32_t first, uint32_t cnt);
void extents_release(struct extents *x);
/* cnt numbers in a row, cnt > 0; -ENOSPC: there is no such run. */
int extents_take(struct extents *x, uint32_t cnt, uint32_t *ret_first);
/* What extents_take() gave, or a part of it. -ENOMEM: it stays in use. */
int extents_give(struct extents *x, uint32_t first, uint32_t cnt);
uint32_t extents_free_cnt(const struct extents *x); /* for tests */

#endif
