/* SPDX-License-Identifier: MIT */
/*
 * tap_rate.h - how often a tapped process is sampled. A sample costs it some microseconds; little
 * else costs it anything.
 *
 * The rate is TAP_RATE_FINEST while samples cost less than TAP_RATE_SHARE of the process's CPU
 * time, or of one CPU, and no more than is allowed; else it is coarser. At a GiB per second it is
 * one sample per 2 MiB, still five hundred per second; counting unsampled allocations costs about
 * as much there. Each sample has the rate that it was drawn with, so numbers keep their meaning
 * when the rate changes.
 */
#ifndef HT_TRACK_TAP_RATE_H
#define HT_TRACK_TAP_RATE_H

#include <stdint.h>

#include "heaptap/abi.h"
#include "profile/recording.h"

#define TAP_RATE_FINEST (64ULL << 10)
#define TAP_RATE_COARSEST (64ULL << 20)
#define TAP_RATE_SHARE 0.005
#define TAP_RATE_OF_ALLOWED 0.7
/* The rate becomes coarser at once, but finer only after this much time with few samples: work
 * comes in bursts, and each would begin with a quarter of a second at the finest rate. */
#define TAP_RATE_CALM_NS 4000000000ULL

struct tap_rate_cost {
	uint64_t spent_ns; /* in the process's probes */
	uint64_t cpu_ns; /* CPU time of the process meanwhile */
	uint64_t time_ns; /* wall time of the interval */
	double allowed_ns; /* allowed by the overhead limit */
};

/* Processes sampled at one rate: one, or a family that counts its hits together. */
struct tap_unit {
	struct recording_limit limit; /* of its cost */
	uint64_t rate_bytes, calm_ns;
	/* As of the last look at the rate. */
	uint64_t checked_ns;
	struct ht_hits hits;
};

/* Return the next rate. Set *calm_ns to TAP_RATE_CALM_NS at first, then keep it from call to call. */
uint64_t tap_rate_next(uint64_t rate_bytes, const struct tap_rate_cost *cost, uint64_t *calm_ns);

#endif
