/* SPDX-License-Identifier: MIT */
/* push_time.h - when it is time to push, and to try again. Times are those of now_ns(). */
#ifndef HT_PUSH_TIME_H
#define HT_PUSH_TIME_H

#include <stdbool.h>
#include <stdint.h>

struct push_clock {
	uint64_t interval_ns; /* 0: never due */
	uint64_t due_ns;
};

/* From now on each interval, the first time within it at a random moment: many hosts that are started
 * together do not push together. The interval that it has already changes nothing. */
void push_clock_set(struct push_clock *c, uint64_t interval_ns, uint64_t now);
/* True once for each interval. Those that were missed (the machine slept) are not made up for. */
bool push_clock_is_due(struct push_clock *c, uint64_t now);

/* Milliseconds until it is due, rounded up; -1: never. */
int push_clock_wait_ms(const struct push_clock *c, uint64_t now);

/* How long to wait after the fail_cnt-th failure (from 1) in a row: min_ns, then twice that, up to
 * max_ns; of it a random half, so that many hosts do not come back to a server at once. */
uint64_t push_retry_delay_ns(uint64_t min_ns, uint64_t max_ns, unsigned int fail_cnt);

#endif
