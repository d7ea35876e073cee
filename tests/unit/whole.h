/* SPDX-License-Identifier: MIT */
/*
 * whole.h - how many of the same a test does by default, and with TESTS_WHOLE=1 (make check-all).
 */
#ifndef HT_TESTS_WHOLE_H
#define HT_TESTS_WHOLE_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool is_whole(void)
{
	const char *value = getenv("TESTS_WHOLE");

	return value && *value;
}

static inline int runs_of(int whole_cnt)
{
	return is_whole() ? whole_cnt : whole_cnt / 4;
}

#endif
