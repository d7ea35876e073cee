/* SPDX-License-Identifier: MIT */
/*
 * tap_rate.h - how often a tapped process is sampled: each sample costs it some microseconds, and little else does.
 *
 * As fine as TAP_RATE_FINEST while samples cost less than TAP_RATE_SHARE of its CPU time, or of one CPU, and no more than
 * is allowed; else coarser. At a GiB a second that is one sample per 2 MiB, still five hundred a second; counting what is
 * not sampled costs about as much there. Each sample has the rate that it was drawn with, so no number changes
 * its meaning.
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
/* Coarser at once, finer again only after so long with little to do: work comes in bursts, and each would
 * begin with a quarter of a second at the finest rate. */
#define TAP_RATE_CALM_NS 4000000000ULL

struct tap_rate_cost {
	uint64_t spent_ns; /* in its probes */
	uint64_t cpu_ns; /* that it used meanwhile */
	uint64_t time_ns; /* that this took */
	double allowed_ns; /* by the overhead limit */
};

/* What is sampled at one rate: a process, or a family that counts its hits together. */
struct tap_unit {
	struct recording_limit limit; /* of what it may cost */
	uint64_t rate_bytes, calm_ns;
	/* As it was when the rate was last looked at. */
	uint64_t checked_ns;
	struct ht_hits hits;
};

/* The rate for what comes. *calm_ns: TAP_RATE_CALM_NS to begin with, kept from one call to the next. */
uint64_t tap_rate_next(uint64_t rate_bytes, const struct tap_rate_cost *cost, uint64_t *calm_ns);

#endif
