/* SPDX-License-Identifier: MIT */
/*
 * log_limit.h - how often a line is worth saying. What happens a thousand times a minute would bury the
 * rest of the log; what is left out is counted, so that the next line can tell of it.
 */
#ifndef HT_BASE_LOG_LIMIT_H
#define HT_BASE_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct log_limit {
	uint64_t every_ns; /* one line in so long ... */
	unsigned int burst; /* ... but so many at once after a quiet time: at least 1 */
	uint64_t paid_until_ns; /* the lines that were said, each every_ns long, reach to here */
	uint64_t left_out_cnt; /* since log_limit_left_out() */
};

/* At time now (now_ns()): may it be said? If not, it counts as left out. */
bool log_limit_allows(struct log_limit *l, uint64_t now);
/* How many were left out since the last call. */
uint64_t log_limit_left_out(struct log_limit *l);

#endif
