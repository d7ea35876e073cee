/* SPDX-License-Identifier: MIT */
/*
 * live.bpf.h - the accounting: outstanding samples and cumulative sums.
 *
 * In-use is what is in `live`, nothing else; the sums in `totals` are monotonic and only say how
 * much went through. user/model/ledger.c is the same rules in plain C, for the tests.
 */
#ifndef HT_LIVE_BPF_H
#define HT_LIVE_BPF_H

__u32 context_last; /* last id that was given out */

/* Id of {process, thread name}; 0 = none could be given. */
static __always_inline __u32 context_intern(__u32 tgid, __u32 generation)
{
	struct ht_context key = { .tgid = tgid, .generation = generation };
	__u32 *known, id;
	long err;

	bpf_get_current_comm(key.comm, sizeof(key.comm));
	known = bpf_map_lookup_elem(&contexts, &key);
	if (known)
		return *known;
	id = __sync_fetch_and_add(&context_last, 1) + 1;
	err = bpf_map_update_elem(&contexts, &key, &id, BPF_NOEXIST);
	if (!err)
		return id;
	/* Another thread of that name came first (its id holds), or the map is full. */
	known = bpf_map_lookup_elem(&contexts, &key);
	if (known)
		return *known;
	stat_inc(HT_STAT_CONTEXTS_FULL);
	return 0;
}

static __always_inline struct ht_total *total_get(__u64 stack_id, __u32 context_id)
{
	struct ht_total_key key = { .stack_id = stack_id, .context_id = context_id };
	struct ht_total *t = bpf_map_lookup_elem(&totals, &key), zero = {};

	if (t)
		return t;
	bpf_map_update_elem(&totals, &key, &zero, BPF_NOEXIST);
	t = bpf_map_lookup_elem(&totals, &key);
	if (!t)
		stat_inc(HT_STAT_TOTALS_FULL);
	return t;
}

/* No overflow: n/p <= max(n, R) * 1.6 for every size that p < 1 is used with. */
static __always_inline __u64 weighted_bytes_8(__u64 size_bytes, __u32 threshold)
{
	if (threshold == HT_KEEP_ALWAYS)
		return size_bytes << 8;
	return (size_bytes * sample_weight_16(threshold)) >> 8;
}

static __always_inline void total_alloc(const struct ht_live *l)
{
	struct ht_total *t = total_get(l->stack_id, l->context_id);

	if (!t)
		return;
	__sync_fetch_and_add(&t->alloc_samples, 1);
	__sync_fetch_and_add(&t->alloc_objects_16, sample_weight_16(l->threshold));
	__sync_fetch_and_add(&t->alloc_bytes_8, weighted_bytes_8(l->size_bytes, l->threshold));
}

static __always_inline void total_free(const struct ht_live *l)
{
	struct ht_total *t = total_get(l->stack_id, l->context_id);

	if (!t)
		return;
	__sync_fetch_and_add(&t->free_samples, 1);
	__sync_fetch_and_add(&t->free_objects_16, sample_weight_16(l->threshold));
	__sync_fetch_and_add(&t->free_bytes_8, weighted_bytes_8(l->size_bytes, l->threshold));
}

__u32 live_filter[HT_FILTER_CNT];

/* Slot of the filter. Blocks are 16 bytes apart at least; processes overlap in addresses. */
static __always_inline __u32 *filter_slot(const struct ht_live_key *key)
{
	__u64 h = ((key->addr >> 4) ^ ((__u64)key->tgid << 20)) * 0x9e3779b97f4a7c15ULL;

	return &live_filter[(h >> (64 - HT_FILTER_SHIFT)) & (HT_FILTER_CNT - 1)];
}

/* May the block be in `live`? The slot is counted up before a block is inserted, which is
 * before the program knows its address, so "no" is certain. */
static __always_inline bool live_may_have(const struct ht_live_key *key)
{
	return *(volatile __u32 *)filter_slot(key) != 0;
}

/* Take a block out; false when it was not sampled. *ret is a copy: the value is gone after. */
static __always_inline bool live_take(const struct ht_live_key *key, struct ht_live *ret)
{
	struct ht_live *l;

	if (!live_may_have(key))
		return false;
	l = bpf_map_lookup_elem(&live, key);
	if (!l)
		return false;
	__builtin_memcpy(ret, l, sizeof(*ret));
	/* Two frees of one block at once is the target's bug: only one of them counts. */
	if (bpf_map_delete_elem(&live, key))
		return false;
	__sync_fetch_and_add(filter_slot(key), -1);
	return true;
}

static __always_inline void live_insert(const struct ht_live_key *key, const struct ht_live *l)
{
	struct ht_live old;
	/* int: before 6.4 the upper half of the result is not the sign's */
	int err;

	__sync_fetch_and_add(filter_slot(key), 1);
	err = bpf_map_update_elem(&live, key, l, BPF_NOEXIST);
	if (err == -HT_EEXIST) {
		/* The address was handed out again: its free went unseen. */
		stat_inc(HT_STAT_MISSED_FREE);
		if (live_take(key, &old))
			total_free(&old);
		err = bpf_map_update_elem(&live, key, l, BPF_ANY);
	}
	if (err) {
		__sync_fetch_and_add(filter_slot(key), -1);
		stat_inc(HT_STAT_LIVE_FULL);
		stat_add(HT_STAT_LIVE_FULL_BYTES,
			 weighted_bytes_8(l->size_bytes, l->threshold) >> 8);
	}
}

#endif
