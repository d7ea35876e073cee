/* SPDX-License-Identifier: MIT */
/*
 * bins.bpf.h - sizes and lifetimes of blocks, by stack and context.
 *
 * `totals` says how much a stack allocated and how much of that was freed. Here the same sums are divided by
 * powers of two: allocated samples by size, freed samples by lifetime. A lifetime goes from the return of the
 * allocating call to the entry of the freeing call. It includes the time that the probes take, a microsecond or
 * so, so the bins below that tell little apart. A block that is not freed is in no bin of lifetimes: it has
 * lived at least its age, which `live` knows.
 *
 * Both objects and bytes are kept, because each answers a question that the other cannot. The cost of churn is
 * calls, so objects. But few small blocks are sampled and each stands for many, so their number is rough.
 * Samples are drawn by bytes, so the bytes of a bin are as exact as any other sum, and have their variance
 * beside them.
 *
 * A stack mostly has one size or two, and a few lifetimes. So a map entry is one bin, not all of them: 66 bins
 * for each stack would be ten times as much. An entry takes 128 bytes of kernel memory: at the default of
 * --max-stacks a full map has 64 MiB, and its table 8 MiB from the start. A sample costs one update here at its
 * allocation and one at its free; a call that is not sampled costs nothing.
 *
 * A bin never has more than the sum in `totals` that it is a part of: it is incremented after that sum, only
 * where there is one, and read before it.
 */
#ifndef HT_BINS_BPF_H
#define HT_BINS_BPF_H

/* Make a new bin; NULL: no room for it. */
static __noinline struct ht_bin *bin_make(const struct ht_live_key *of,
					  const struct ht_bin_key *key)
{
	static const struct ht_bin zero; /* the BPF stack is short */
	struct ht_bin *b;

	if (!share_take(of->tgid, of->generation, HT_SHARED_BINS))
		return NULL;
	if (bpf_map_update_elem(&bins, key, &zero, BPF_NOEXIST))
		share_give(of->tgid, of->generation, HT_SHARED_BINS);
	b = bpf_map_lookup_elem(&bins, key);
	if (!b)
		stat_inc(HT_STAT_BINS_FULL);
	return b;
}

/* Add a sample to a bin. first: HT_BIN_*; n: the size, or the units of time. */
static __noinline int bin_add(const struct ht_live_key *of, const struct ht_live *l, __u32 first,
			      __u64 n)
{
	__u32 cnt = first == HT_BIN_SIZE ? HT_BIN_SIZE_CNT : HT_BIN_LIFE_CNT;
	__u32 idx = n ? log2_u64(n) + 1 : 0;
	struct ht_bin_key key = {
		.stack_id = l->stack_id,
		.context_id = l->context_id,
		.bin = first + (idx < cnt ? idx : cnt - 1),
	};
	struct ht_bin *b = bpf_map_lookup_elem(&bins, &key);

	if (!b)
		b = bin_make(of, &key);
	if (!b)
		return 0;
	variance_add(&b->variance, l->size_bytes, l->threshold);
	__sync_fetch_and_add(&b->samples, 1);
	ht_sum_add(&b->objects_16, sample_weight_16(l->threshold));
	ht_sum_add(&b->bytes_8, weighted_bytes_8(l->size_bytes, l->threshold));
	return 0;
}

static __always_inline void bin_add_size(const struct ht_live_key *of, const struct ht_live *l)
{
	bin_add(of, l, HT_BIN_SIZE, l->size_bytes);
}

static __always_inline void bin_add_life(const struct ht_live_key *of, const struct ht_live *l)
{
	__u64 now_ns = bpf_ktime_get_ns();
	__u64 life_ns = now_ns > l->time_ns ? now_ns - l->time_ns : 0;

	bin_add(of, l, HT_BIN_LIFE, HT_BIN_LIFE_UNITS(life_ns));
}

#endif
