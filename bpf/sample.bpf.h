/* SPDX-License-Identifier: MIT */
/*
 * sample.bpf.h - keep this allocation?
 *
 * Each allocation of n bytes is kept with p(n) = 1 - exp(-n/R), independently of every other:
 * no countdown, no state, no race, and R may change at any time. The threshold that was used
 * is stored with the sample, whose weight is exactly 1/p, so that rounding of the table cannot
 * bias anything. user/profile/estimate.c fills the table and explains the estimator.
 */
#ifndef HT_SAMPLE_BPF_H
#define HT_SAMPLE_BPF_H

/* Position of the highest bit of n != 0. BPF has no such instruction. */
static __always_inline __u32 log2_u64(__u64 n)
{
	__u32 r, shift;

	r = (n > 0xffffffffULL) << 5;
	n >>= r;
	shift = (n > 0xffff) << 4;
	n >>= shift;
	r |= shift;
	shift = (n > 0xff) << 3;
	n >>= shift;
	r |= shift;
	shift = (n > 0xf) << 2;
	n >>= shift;
	r |= shift;
	shift = (n > 0x3) << 1;
	n >>= shift;
	r |= shift;
	return r | (n >> 1);
}

/* The same as estimate_bucket(). */
static __always_inline __u32 sample_bucket(__u64 size_bytes)
{
	__u32 octave;

	if (size_bytes < (1 << HT_SUB_BITS))
		return size_bytes ? size_bytes : 1;
	if (size_bytes >> 48)
		return HT_BUCKET_CNT - 1;
	octave = log2_u64(size_bytes);
	return ((octave - HT_SUB_BITS + 1) << HT_SUB_BITS) +
	       ((size_bytes >> (octave - HT_SUB_BITS)) & ((1 << HT_SUB_BITS) - 1));
}

/*
 * Random numbers: SplitMix64, one stream for each CPU, seeded by user space. A counter is stepped atomically
 * and then mixed: a program may be preempted anywhere, and still no number is drawn twice. Every hit of an
 * allocation draws; the kernel's helper takes 40 ns more on a CPU where returns of functions are guarded.
 */
#define DRAWS_CNT 64 /* a power of two; CPUs beyond it share */
__u64 ht_draws[DRAWS_CNT][8]; /* a cache line each, of which the first word is used */

static __always_inline __u32 draw_u32(void)
{
	__u64 *state = ht_draws[bpf_get_smp_processor_id() & (DRAWS_CNT - 1)];
	__u64 z = __sync_fetch_and_add(state, 0x9e3779b97f4a7c15ULL);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (z ^ z >> 31) >> 32;
}

/* Return the threshold with which the allocation is kept, or 0: not kept. */
static __always_inline __u32 sample_draw(const struct ht_rate *rate, __u64 size_bytes)
{
	__u32 bucket = sample_bucket(size_bytes);
	__u32 threshold;

	/* Hidden from clang: it knows that some buckets are small and leaves the check out there, but 6.1's
	 * verifier forgets the range of a number that has been on the stack. */
	asm volatile("" : "+r"(bucket));
	if (bucket >= HT_BUCKET_CNT)
		return 0;
	/* Read once: the table may change at the same time, and the sample stores the value that it was drawn
	 * with. */
	threshold = *(const volatile __u32 *)&rate->threshold[bucket];
	if (threshold == HT_KEEP_ALWAYS || draw_u32() < threshold)
		return threshold;
	return 0;
}

/* 1/p in units of 2^-16. p = threshold / 2^32 except for HT_KEEP_ALWAYS. */
static __always_inline __u64 sample_weight_16(__u32 threshold)
{
	if (threshold == HT_KEEP_ALWAYS || !threshold)
		return 1 << 16;
	return (1ULL << 48) / threshold;
}

/* No overflow: n/p <= max(n, R) * 1.6 for every size with p < 1, R is at most 2^40, and no block has 2^56 bytes. */
static __always_inline __u64 weighted_bytes_8(__u64 size_bytes, __u32 threshold)
{
	if (threshold == HT_KEEP_ALWAYS)
		return size_bytes << 8;
	return (size_bytes * sample_weight_16(threshold)) >> 8;
}

/* log2 of the rate that sampling began with; set before there are samples. See heaptap/variance.h. */
__u32 ht_base_log2;

static __always_inline void variance_add(struct ht_variance *sum, __u64 size_bytes, __u32 threshold)
{
	struct ht_variance v;

	if (threshold == HT_KEEP_ALWAYS)
		return;
	v = ht_variance_of(size_bytes * sample_weight_16(threshold), threshold, ht_base_log2);
	if (v.fine)
		__sync_fetch_and_add(&sum->fine, v.fine);
	else
		__sync_fetch_and_add(&sum->coarse, v.coarse);
}

#endif
