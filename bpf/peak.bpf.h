/* SPDX-License-Identifier: MIT */
/*
 * peak.bpf.h - the most that all recorded processes held together, when that was, and what each stack held then.
 *
 * Whoever looks at intervals misses the peak of a short program, or finds it too low. So it is kept at each sample. The
 * sum of all is compared with the peak when a sample is added; nothing is copied then, although at a new peak every
 * stack's part may be another. Each new peak has a number. A stack's part is copied when the stack changes for the first
 * time after a peak: until then what it holds is what it held at that peak. Per stack, in struct ht_total:
 *
 *	before a change, if peak_number is not the present one: at_peak = held, peak_number = the present one
 *	then held changes
 *
 * When all is over, a stack held at_peak at the peak if its number is the peak's, else `held`, as it has not changed
 * since. (engine_read.c, engine_peak_of().) So a sample costs one more look-up at its allocation and one at its free,
 * whatever the number of stacks.
 *
 * An image that is over (exit, exec) holds nothing any more: its sum is taken out of the sum of all, and it notes the
 * number of the peak. Its stacks do not change after that. They count if no later peak came.
 *
 * The sum and a stack's part are two words, and CPUs do not wait for each other. So at a peak a stack may be off by the
 * samples that other CPUs are adding or taking out at that instant, one for each CPU. It does not add up: the next
 * peak copies `held`, which is exact. With one thread everything is exact for the samples that there are.
 *
 * The error. At any given moment each part is an unbiased sum of samples and has its variance, as any other. The moment
 * is where the estimate is highest, not the truth. A peak that stands out by more than the error is found where it is,
 * and is not biased. On a plateau whose blocks come and go, the estimate is highest where chance adds most: with k
 * turnovers the peak is too high by about the largest of k normal errors (1.5 standard errors for 10, 2.5 for 100).
 * When every allocation is kept there is no error.
 */
#ifndef HT_PEAK_BPF_H
#define HT_PEAK_BPF_H

/* Set before the object is loaded. Needs ht_sum_images. */
const volatile bool ht_keeps_peak;
struct ht_peak ht_peak;

/* sign: 1 or -1. */
static __always_inline void held_add(struct ht_held *held, const struct ht_live *l, __s64 sign)
{
	__u64 weight_16 = sample_weight_16(l->threshold);
	struct ht_variance v =
		ht_variance_of(l->size_bytes * weight_16, l->threshold, ht_base_log2);

	__sync_fetch_and_add(&held->bytes_8,
			     sign * (__s64)weighted_bytes_8(l->size_bytes, l->threshold));
	__sync_fetch_and_add(&held->objects_16, sign * (__s64)weight_16);
	__sync_fetch_and_add(&held->samples, sign);
	if (v.fine)
		__sync_fetch_and_add(&held->variance.fine, sign * (__s64)v.fine);
	if (v.coarse)
		__sync_fetch_and_add(&held->variance.coarse, sign * (__s64)v.coarse);
}

/* One of several CPUs copies it. */
static __always_inline void peak_copy(struct ht_total *t)
{
	__u64 number = *(volatile __u64 *)&ht_peak.number;
	__u64 seen = *(volatile __u64 *)&t->peak_number;

	if (seen != number && __sync_val_compare_and_swap(&t->peak_number, seen, number) == seen)
		t->at_peak = t->held;
}

/* A sample is added (sign 1) or taken out (-1). A stack without a sum counts nowhere, so that stacks add up to the
 * peak. Global, as live_add(). */
__noinline int peak_change(const struct ht_live *l, __s64 sign)
{
	struct ht_total_key key = {};
	struct ht_total *t;
	__s64 bytes_8, sum;

	if (!l)
		return 0;
	key.stack_id = l->stack_id;
	key.context_id = l->context_id;
	t = bpf_map_lookup_elem(&totals, &key);
	if (!t)
		return 0;
	peak_copy(t);
	bytes_8 = sign * (__s64)weighted_bytes_8(l->size_bytes, l->threshold);
	held_add(&t->held, l, sign);
	sum = __sync_fetch_and_add(&ht_peak.held_bytes_8, bytes_8) + bytes_8;
	if (sign > 0 && peak_raise(&ht_peak.bytes_8, &ht_peak.time_ns, sum, l->time_ns))
		__sync_fetch_and_add(&ht_peak.number, 1);
	return 0;
}

/* Its last thread exits, or executes another program. */
static __always_inline void peak_image_over(__u32 tgid, __u32 generation)
{
	struct ht_image_key key = { tgid, generation };
	struct ht_image *image = ht_keeps_peak ? bpf_map_lookup_elem(&images, &key) : NULL;

	if (!image || image->over_peak || !ht_peak.number)
		return;
	image->over_peak = ht_peak.number;
	__sync_fetch_and_add(&ht_peak.held_bytes_8, -image->inuse_bytes_8);
}

#endif
