/* SPDX-License-Identifier: MIT */
/* met_keys.h - 8 bytes that make hash_bytes() end in zeros: keys that all meet in one slot of a table without a key. */
#ifndef TEST_MET_KEYS_H
#define TEST_MET_KEYS_H

#include <stdint.h>
#include <time.h>

#define MET_ZERO_BITS 20

/* The nth, for a hash whose state is `before` (n * k for n bytes). */
static inline uint64_t met_word(uint64_t nth, uint64_t before)
{
	const uint64_t k = 0x9e3779b97f4a7c15ULL;
	uint64_t inverse = k, x = nth << MET_ZERO_BITS, y;

	for (int i = 0; i < 6; i++) /* Newton: twice as many bits are right each time */
		inverse *= 2 - k * inverse;
	y = x ^ x >> 29;
	y = x ^ y >> 29;
	y = x ^ y >> 29;
	y ^= y >> 32;
	return y * inverse ^ before;
}

static inline double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

#endif
