/* SPDX-License-Identifier: MIT */
/*
 * live.bpf.h - the accounting: outstanding samples and cumulative sums.
 *
 * In-use is what is in `live`, nothing else; the sums in `totals` are monotonic and only say how
 * much went through. tests/bpf/ledger.h is the same rules in plain C, and test_model.c compares them.
 */
#ifndef HT_LIVE_BPF_H
#define HT_LIVE_BPF_H

/* Make a new sum; NULL: no room for it. */
static __noinline struct ht_total *total_make(const struct ht_live_key *of,
					      const struct ht_total_key *key)
{
	static const struct ht_total zero; /* the BPF stack is short */
	struct ht_total *t;

	if (!share_take(of->tgid, of->generation, HT_SHARED_TOTALS))
		return NULL;
	if (bpf_map_update_elem(&totals, key, &zero, BPF_NOEXIST))
		share_give(of->tgid, of->generation, HT_SHARED_TOTALS);
	t = bpf_map_lookup_elem(&totals, key);
	if (!t)
		stat_inc(HT_STAT_TOTALS_FULL);
	return t;
}

static __always_inline struct ht_total *total_get(const struct ht_live_key *of,
						  const struct ht_live *l)
{
	struct ht_total_key key = { .stack_id = l->stack_id, .context_id = l->context_id };
	struct ht_total *t = bpf_map_lookup_elem(&totals, &key);

	return t ? t : total_make(of, &key);
}

static __always_inline void total_alloc(const struct ht_live_key *of, const struct ht_live *l)
{
	struct ht_total *t = total_get(of, l);

	if (!t)
		return;
	variance_add(&t->alloc_variance, l->size_bytes, l->threshold);
	__sync_fetch_and_add(&t->alloc_samples, 1);
	ht_sum_add(&t->alloc_objects_16, sample_weight_16(l->threshold));
	ht_sum_add(&t->alloc_bytes_8, weighted_bytes_8(l->size_bytes, l->threshold));
	bin_add_size(of, l);
}

/* is_seen: the block is freed now. */
static __always_inline void total_free(const struct ht_live_key *of, const struct ht_live *l,
				       bool is_seen)
{
	struct ht_total *t = total_get(of, l);

	if (!t)
		return;
	__sync_fetch_and_add(&t->free_samples, 1);
	ht_sum_add(&t->free_objects_16, sample_weight_16(l->threshold));
	ht_sum_add(&t->free_bytes_8, weighted_bytes_8(l->size_bytes, l->threshold));
	if (is_seen)
		bin_add_life(of, l);
}

static __always_inline void image_charge(const struct ht_live_key *of, const struct ht_live *l,
					 __s64 bytes_8)
{
	struct ht_image_key key = { of->tgid, of->generation };
	struct ht_image *image = ht_sum_images ? image_get(&key) : NULL;
	__s64 sum;

	if (!image)
		return;
	sum = __sync_fetch_and_add(&image->inuse_bytes_8, bytes_8) + bytes_8;
	peak_raise(&image->peak_bytes_8, &image->peak_ns, sum, l->time_ns);
	if (ht_keeps_peak && !image->over_peak)
		peak_change(l, 1);
}

static __always_inline void image_discharge(const struct ht_live_key *of, const struct ht_live *l,
					    __s64 bytes_8)
{
	struct ht_image_key key = { of->tgid, of->generation };
	struct ht_image *image = ht_sum_images ? bpf_map_lookup_elem(&images, &key) : NULL;

	if (!image)
		return;
	__sync_fetch_and_add(&image->inuse_bytes_8, -bytes_8);
	if (ht_keeps_peak && !image->over_peak)
		peak_change(l, -1);
}

/* Call it before the block is in `live`: its free may come at any time after. */
static __always_inline void live_charge(const struct ht_live_key *key, struct ht_live *l)
{
	__s64 bytes_8 = weighted_bytes_8(l->size_bytes, l->threshold);
	__u32 task_slot;

	if (l->instance) {
		task_slot = scope_task_slot(l->scope_slot);
		if (!task_slot ||
		    !instance_add(task_slot, key, l->instance, l->size_bytes, l->threshold))
			l->instance = 0;
	}
	scope_add(l->scope_slot, bytes_8, l->time_ns);
	image_charge(key, l, bytes_8);
}

static __always_inline void live_discharge(const struct ht_live_key *key, const struct ht_live *l)
{
	__s64 bytes_8 = weighted_bytes_8(l->size_bytes, l->threshold);

	if (l->instance)
		instance_sub(scope_task_slot(l->scope_slot), l->instance, bytes_8,
			     sample_weight_16(l->threshold));
	scope_add(l->scope_slot, -bytes_8, 0);
	image_discharge(key, l, bytes_8);
}

/* A block was taken out of `live` for good. Global, as live_add(): the verifier looks at it once, and not once
 * for each caller. */
__noinline int live_freed(const struct ht_live_key *key, const struct ht_live *l)
{
	if (!key || !l)
		return 0;
	stat_inc(HT_STAT_FREES);
	total_free(key, l, true);
	live_discharge(key, l);
	return 0;
}

/* ... and was freed at an unknown time. */
static __always_inline void live_freed_unseen(const struct ht_live_key *key,
					      const struct ht_live *l)
{
	total_free(key, l, false);
	live_discharge(key, l);
}

/* A block was taken out of `live` because its free cannot be seen. */
static __always_inline void live_drop(const struct ht_live_key *key, const struct ht_live *l)
{
	stat_inc(HT_STAT_DROPPED);
	live_discharge(key, l);
}

__u32 live_filter[HT_FILTER_CNT];

/* Slot of the filter. Blocks are at least 16 bytes apart; addresses of processes overlap. */
static __always_inline __u32 *filter_slot(const struct ht_live_key *key)
{
	__u64 h = ((key->addr >> 4) ^ ((__u64)key->tgid << 20)) * 0x9e3779b97f4a7c15ULL;

	return &live_filter[(h >> (64 - HT_FILTER_SHIFT)) & (HT_FILTER_CNT - 1)];
}

/* May the block be in `live`? The slot is incremented before a block is inserted, which is before the program
 * knows the block's address: so "no" is certain. */
static __always_inline bool live_may_have(const struct ht_live_key *key)
{
	return *(volatile __u32 *)filter_slot(key) != 0;
}

/* Take a block out; false when it was not sampled. *ret is a copy: the value is gone afterwards. */
static __always_inline bool live_take(const struct ht_live_key *key, struct ht_live *ret)
{
	struct ht_live *l;

	if (!live_may_have(key))
		return false;
	l = bpf_map_lookup_elem(&live, key);
	if (!l)
		return false;
	__builtin_memcpy(ret, l, sizeof(*ret));
	/* Two frees of one block at once are the target's bug: only one of them counts. */
	if (bpf_map_delete_elem(&live, key))
		return false;
	__sync_fetch_and_add(filter_slot(key), -1);
	share_give(key->tgid, key->generation, HT_SHARED_LIVE);
	return true;
}

/* Put in a block that is already charged. Global. */
__noinline int live_insert(const struct ht_live_key *arg_key, const struct ht_live *arg)
{
	struct ht_live_key copied_key;
	struct ht_live copied, old;
	/* Copies: 6.1's verifier does not let the arguments of a global function into a map. */
	const struct ht_live_key *key = &copied_key;
	const struct ht_live *l = &copied;
	/* int: before 6.4 the upper half of the result is not sign-extended */
	int err;

	if (!arg_key || !arg)
		return 0;
	copied_key = *arg_key;
	copied = *arg;
	if (!share_take(key->tgid, key->generation, HT_SHARED_LIVE)) {
		live_discharge(key, l);
		return 0;
	}
	__sync_fetch_and_add(filter_slot(key), 1);
	err = bpf_map_update_elem(&live, key, l, BPF_NOEXIST);
	if (err == -HT_EEXIST) {
		/* The address was handed out again: the free of the old block went unseen. */
		stat_inc(HT_STAT_MISSED_FREE);
		if (live_take(key, &old))
			live_freed_unseen(key, &old);
		err = bpf_map_update_elem(&live, key, l, BPF_ANY);
	}
	if (err) {
		__sync_fetch_and_add(filter_slot(key), -1);
		share_give(key->tgid, key->generation, HT_SHARED_LIVE);
		live_discharge(key, l);
		stat_inc(HT_STAT_LIVE_FULL);
		stat_add(HT_STAT_LIVE_FULL_BYTES,
			 weighted_bytes_8(l->size_bytes, l->threshold) >> 8);
	}
	return 0;
}

/* Add a block that was just allocated to the sums, and to `live` unless its free will not be seen. */
__noinline int live_add(const struct ht_live_key *key, struct ht_live *l, bool is_alloc_only)
{
	if (!key || !l)
		return 0;
	l->time_ns = bpf_ktime_get_ns();
	total_alloc(key, l);
	if (is_alloc_only) {
		stat_inc(HT_STAT_ALLOC_ONLY);
		return 0;
	}
	live_charge(key, l);
	live_insert(key, l);
	return 0;
}

#endif
