/* SPDX-License-Identifier: MIT */
/*
 * sum.h - sums that only grow, beyond 64 bits; for BPF and user space.
 *
 * Weighted bytes are kept in units of 2^-8, objects in units of 2^-16. 64 bits of them hold 2^56 bytes, which a server that
 * allocates 10 GB a second reaches in three months, and 2^48 objects, which a tapped loop reaches in a year.
 *
 * BPF cannot add 128 bits atomically, and a carry between two words would let a reader see the one without the other. So a
 * summand is divided, not the sum: its low 16 bits are added to `low`, the rest to `high`, and the sum is high * 2^16 + low.
 * Neither wraps: `low` has room for 2^48 summands, `high` for a sum of 2^80. A reader between the two additions misses a
 * part of one summand.
 */
#ifndef HEAPTAP_SUM_H
#define HEAPTAP_SUM_H

#include "heaptap/abi.h"

/* Most summands have one part that is not 0: a kept block of 64 bytes, any number of whole objects. */
static inline __attribute__((always_inline)) void ht_sum_add(struct ht_sum *sum, __u64 n)
{
	__u64 low = n & ((1 << HT_SUM_LOW_BITS) - 1), high = n >> HT_SUM_LOW_BITS;

	if (low)
		__sync_fetch_and_add(&sum->low, low);
	if (high)
		__sync_fetch_and_add(&sum->high, high);
}

#ifndef __BPF__
static inline void ht_sum_merge(struct ht_sum *sum, const struct ht_sum *other)
{
	sum->low += other->low;
	sum->high += other->high;
}

/* unit_bits: the sum is in units of 2^-unit_bits. */
static inline double ht_sum_value(const struct ht_sum *sum, unsigned int unit_bits)
{
	return ((double)sum->high * (1 << HT_SUM_LOW_BITS) + (double)sum->low) /
	       (double)(1ULL << unit_bits);
}
#endif

#endif
