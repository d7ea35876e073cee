/* SPDX-License-Identifier: MIT */
/* random.h - the same numbers in each run of a test: xorshift64. */
#ifndef HT_TESTS_RANDOM_H
#define HT_TESTS_RANDOM_H

#include <stdint.h>

static inline uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* In [0, 1). */
static inline double uniform(uint64_t *seed)
{
	return (double)(next_random(seed) * 2685821657736338717ULL >> 11) * 0x1p-53;
}

#endif
