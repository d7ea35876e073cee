/* SPDX-License-Identifier: MIT */
/* push_time.h - when to push, and when to try again. Times are those of now_ns(). */
#ifndef HT_PUSH_TIME_H
#define HT_PUSH_TIME_H

#include <stdbool.h>
#include <stdint.h>

struct push_clock {
	uint64_t interval_ns; /* 0: never due */
	uint64_t due_ns;
};

/* Be due each interval from now on, the first time at a random moment within it, so that many hosts started
 * together do not push together. An unchanged interval changes nothing. */
void push_clock_set(struct push_clock *c, uint64_t interval_ns, uint64_t now);
/* True once for each interval. Missed intervals (the machine slept) are not made up for. */
bool push_clock_is_due(struct push_clock *c, uint64_t now);

/* Milliseconds until it is due, rounded up; -1: never. */
int push_clock_wait_ms(const struct push_clock *c, uint64_t now);

/* Delay after the fail_cnt-th failure (from 1) in a row: min_ns, doubled each time, up to max_ns; the last half of
 * it is random, so that many hosts do not come back to a server at once. */
uint64_t push_retry_delay_ns(uint64_t min_ns, uint64_t max_ns, unsigned int fail_cnt);

#endif
