/* SPDX-License-Identifier: MIT */
/*
 * auto_rate.h - how finely `heaptap record` samples by default: as finely as costs next to nothing.
 *
 * A sample costs its process some microseconds, so AUTO_RATE_PER_S of them cost some tenths of a
 * percent of a CPU. A program that allocates little is therefore sampled more finely than every
 * AUTO_RATE_USUAL bytes, so that what it holds is known better: a leak of 10 KiB a second gives 5
 * samples in 30 seconds at 64 KiB, and 40 at 8 KiB. Each sample keeps the probability that it was
 * drawn with, so numbers keep their meaning when the rate changes.
 *
 * Pure.
 */
#ifndef HT_BUDGET_AUTO_RATE_H
#define HT_BUDGET_AUTO_RATE_H

#include <stdbool.h>
#include <stdint.h>

#define AUTO_RATE_FINEST (4ULL << 10)
#define AUTO_RATE_USUAL (64ULL << 10)
#define AUTO_RATE_PER_S 500.0
/* Total number of samples from which on fewer are taken. The map of live samples holds four times as many. */
#define AUTO_RATE_PLENTY 250000

struct auto_rate {
	uint64_t rate_bytes;
	uint64_t begin_ns;
	uint64_t seen_ns, changed_ns, burst_ns; /* times of the last look, change, and burst */
	uint64_t sample_cnt;
	double cnt, wall_ns; /* recent samples, and their time */
	double ns_per_byte; /* sum of time divided by the rate in that time */
};

void auto_rate_begin(struct auto_rate *a, uint64_t now_ns);
/*
 * sample_cnt: so far; it may fall when a process executes another program. may_be_fine: nothing is
 * given up for the overhead limit. true: rate_bytes has changed.
 */
bool auto_rate_update(struct auto_rate *a, uint64_t now_ns, uint64_t sample_cnt, bool may_be_fine);
/* The constant rate that would give as many samples of an even stream of allocations. */
uint64_t auto_rate_mean(const struct auto_rate *a);

#endif
