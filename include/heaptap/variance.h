/* SPDX-License-Identifier: MIT */
/*
 * variance.h - the error of what was allocated, added up in whole numbers; for BPF and user space.
 *
 * A block of n bytes that was kept with probability p counts W = n/p bytes, and adds W^2 (1-p) to the
 * variance of their sum (user/profile/estimate.c). With p = 1 - exp(-n/R) that is at most R^2, whatever
 * n is, but W reaches 22 R before p is so near 1 that everything is kept, R is anything from 1 byte to
 * 2^40, and the budget may make it coarser meanwhile. BPF has 64 bits and no floating point. So sums
 * are in units of the rate that the recording began with, the base: B = 2^base_log2 >= R > B/2. There
 * are two sums, because the few samples of a much coarser rate would need most of the bits:
 *
 *	fine    W < 64 B     in units of (B / 2^10)^2 bytes^2
 *	coarse  all others   in units of B^2
 *
 * Nothing overflows. W is in 1/65536 bytes and below 2^64; w = W / B, likewise, is below 2^22 in `fine`, so that
 * w * 2^32 and w * (w * 2^16) are below 2^60, and what is added is below 2^32. As a sample of the base
 * rate adds 2^20 at most, `fine` holds 2^44 of them. In `coarse` w is in 1/8 instead: below 2^28 (and
 * w^2 (1-p) below 2^47) up to a rate of 2^20 bases, which engine_set_rate() sees to; what is added is
 * below 2^41. A foreign sampler with a still coarser rate may report a larger W. Then the most that is added is added:
 * its own part of the error is too small, and what others add stays right.
 *
 * Rounding: of w to 2^-9 at worst, and of what is added by a unit: never to 0, for what was not certain
 * to be kept must not come out as exact. The root of a unit is at most 1/64 of W. Sums are right to 1 %
 * (tests/unit/test_estimate.c), but of blocks larger than 12 R, of which hardly one is ever missed.
 */
#ifndef HEAPTAP_VARIANCE_H
#define HEAPTAP_VARIANCE_H

#include "heaptap/abi.h"

#define HT_VARIANCE_COARSE_LOG2 13
#define HT_VARIANCE_W_LOG2 28
/* A rate may be so many times (log2) coarser than the base. */
#define HT_VARIANCE_RANGE_LOG2 20

/* W in 1/65536 bytes; threshold as in struct ht_rate. Zero: it was certain to be kept. */
static inline struct ht_variance ht_variance_of(__u64 weighted_bytes_16, __u32 threshold,
						__u32 base_log2)
{
	struct ht_variance v = {};
	__u64 missing = (1ULL << 32) - threshold; /* 1 - p, in 2^-32 */
	__u64 w = weighted_bytes_16 >> base_log2, w_missing;
	int is_coarse = w >> 22 != 0;

	if (threshold == HT_KEEP_ALWAYS)
		return v;
	if (is_coarse)
		w >>= HT_VARIANCE_COARSE_LOG2;
	if (w >> HT_VARIANCE_W_LOG2)
		w = (1ULL << HT_VARIANCE_W_LOG2) - 1;
	w_missing = w * missing >> 16;
	if (!is_coarse)
		v.fine = (w * w_missing >> 28) + 1;
	else if ((w >> 8) * (w_missing >> 8) >> 47) /* the product has more than 63 bits */
		v.coarse = (1ULL << 41) - 1;
	else
		v.coarse = (w * w_missing >> 22) + 1;
	return v;
}

/* ceil(log2(R)) */
static inline __u32 ht_variance_base_log2(__u64 rate_bytes)
{
	__u32 n = 0;

	while (n < 63 && 1ULL << n < rate_bytes)
		n++;
	return n;
}

#endif
