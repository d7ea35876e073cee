/* SPDX-License-Identifier: MIT */
/*
 * log_limit.h - limits how often a line is logged. An event that happens a thousand times a minute would bury the rest
 * of the log. Lines left out are counted, so that the next line can tell.
 */
#ifndef HT_BASE_LOG_LIMIT_H
#define HT_BASE_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct log_limit {
	uint64_t every_ns; /* one line per this time ... */
	unsigned int burst; /* ... but this many at once after a quiet time: at least 1 */
	uint64_t paid_until_ns; /* where the logged lines reach, if each takes every_ns */
	uint64_t left_out_cnt; /* since the last log_limit_left_out() */
};

/* May the line be logged at time now (now_ns())? If not, it counts as left out. */
bool log_limit_allows(struct log_limit *l, uint64_t now);
/* The number of lines left out since the last call. */
uint64_t log_limit_left_out(struct log_limit *l);

#endif
