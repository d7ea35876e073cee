/* SPDX-License-Identifier: MIT */
/*
 * auto_rate.h - how finely `heaptap record` samples when nobody says: as finely as costs next to nothing.
 *
 * A sample costs its process some microseconds, so that AUTO_RATE_PER_S of them are some tenths of a percent of a CPU.
 * A program that allocates little is sampled more finely than every AUTO_RATE_USUAL bytes for that, and what it holds
 * is known the better: a leak of 10 KiB a second is 5 samples in 30 seconds at 64 KiB, and 40 at 8 KiB. Each sample keeps
 * the probability that it was drawn with, so no number changes its meaning.
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
/* So many samples in all, and the map of live ones has room for four times as many: from there on fewer are taken. */
#define AUTO_RATE_PLENTY 250000

struct auto_rate {
	uint64_t rate_bytes;
	uint64_t begin_ns;
	uint64_t seen_ns, changed_ns, burst_ns; /* the last look, change, and too many at once */
	uint64_t sample_cnt;
	double cnt, wall_ns; /* samples of late, and in how long */
	double ns_per_byte; /* time, divided by the rate that it had */
};

void auto_rate_begin(struct auto_rate *a, uint64_t now_ns);
/*
 * sample_cnt: so far; it may fall, where a process has become another program. may_be_fine: nothing is given up for the
 * overhead limit. true: rate_bytes is another.
 */
bool auto_rate_look(struct auto_rate *a, uint64_t now_ns, uint64_t sample_cnt, bool may_be_fine);
/* The rate at which what comes evenly would be seen as often as it was. */
uint64_t auto_rate_mean(const struct auto_rate *a);

#endif
