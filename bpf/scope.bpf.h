/* SPDX-License-Identifier: MIT */
/*
 * scope.bpf.h - what scopes and their instances hold, and their peaks.
 *
 * Every scope has a slot with its sums. A charge goes to the slot and to all its ancestors, so a peak covers
 * everything below the scope. It is exact: taken at each sample, not when somebody happens to look. Allocations
 * in no scope have a slot, too. `live` stays the truth for what is in use now: these sums only tell how high it
 * went, and when a task that has exited is empty.
 *
 * A charge and its discharge add the same number (made from the stored size and threshold), so the sum is
 * exactly 0 when nothing is left.
 */
#ifndef HT_SCOPE_BPF_H
#define HT_SCOPE_BPF_H

#define SCOPE_CHAIN_CAP HT_SCOPE_DEPTH_CAP
#define PEAK_TRIES 4

/* Raise a peak; false: it is not lower. When two CPUs raise it at once the higher value stays, unless four tries in a
 * row are lost: then the peak is too low by what the others added meanwhile. */
static __always_inline bool peak_raise(__s64 *peak, __u64 *peak_ns, __s64 value, __u64 now_ns)
{
	__s64 seen = *(volatile __s64 *)peak;

	for (int i = 0; i < PEAK_TRIES; i++) {
		__s64 before;

		if (value <= seen)
			return false;
		before = __sync_val_compare_and_swap(peak, seen, value);
		if (before == seen) {
			*peak_ns = now_ns;
			return true;
		}
		seen = before;
	}
	return false;
}

/* Add to one slot; returns its parent's slot. Global: the verifier looks at it once. */
__noinline __u32 scope_add_one(__u32 slot, __s64 bytes_8, __u64 now_ns)
{
	struct ht_scope_sums *s = bpf_map_lookup_elem(&scope_sums, &slot);
	__s64 sum;

	if (!s)
		return 0;
	sum = __sync_fetch_and_add(&s->inuse_bytes_8, bytes_8) + bytes_8;
	if (bytes_8 > 0)
		peak_raise(&s->peak_bytes_8, &s->peak_ns, sum, now_ns);
	return s->parent_slot;
}

/* Add to the slot and to its ancestors. */
__noinline int scope_add(__u32 slot, __s64 bytes_8, __u64 now_ns)
{
	for (int i = 0; i < SCOPE_CHAIN_CAP && slot; i++)
		slot = scope_add_one(slot, bytes_8, now_ns);
	return 0;
}

static __always_inline __u32 scope_task_slot(__u32 slot)
{
	struct ht_scope_sums *s = bpf_map_lookup_elem(&scope_sums, &slot);

	return s && slot ? s->task_slot : 0;
}

static __always_inline struct ht_instance *instance_find(const struct ht_instance_key *key)
{
	return bpf_map_lookup_elem(&instances, key);
}

/* NULL: the map is full, or the process has used up its share of it. */
static __always_inline struct ht_instance *instance_make(const struct ht_instance_key *key,
							 const struct ht_live_key *of, __u64 now_ns)
{
	/* last_ns is not zero: user space forgets entries that are empty and old, and may look at once. */
	struct ht_instance *v, fresh = { .last_ns = now_ns,
					 .owner_tgid = of->tgid,
					 .owner_generation = of->generation };

	if (!share_take(of->tgid, of->generation, HT_SHARED_INSTANCES))
		return NULL;
	if (!bpf_map_update_elem(&instances, key, &fresh, BPF_NOEXIST))
		return instance_find(key);
	/* Another CPU was faster, or the map is full. */
	share_give(of->tgid, of->generation, HT_SHARED_INSTANCES);
	v = instance_find(key);
	if (!v)
		stat_inc(HT_STAT_INSTANCES_FULL);
	return v;
}

/*
 * Add a sampled allocation to its instance, which is made when it is new. false: no room; then the block must
 * not carry the instance, or its free would be subtracted from sums that it is not in.
 */
static __noinline bool instance_add(__u32 task_slot, const struct ht_live_key *of, __u64 number,
				    __u64 size_bytes, __u32 threshold)
{
	__s64 bytes_8 = weighted_bytes_8(size_bytes, threshold);
	__s64 objects_16 = sample_weight_16(threshold);
	struct ht_instance_key key = { .task_slot = task_slot, .instance = number };
	__u64 now_ns = bpf_ktime_get_ns();
	struct ht_instance *v = instance_find(&key);
	__s64 sum;

	if (!v)
		v = instance_make(&key, of, now_ns);
	if (!v)
		return false;
	v->last_ns = now_ns;
	ht_sum_add(&v->alloc_bytes_8, bytes_8);
	ht_sum_add(&v->alloc_objects_16, objects_16);
	__sync_fetch_and_add(&v->alloc_samples, 1);
	variance_add(&v->alloc_variance, size_bytes, threshold);
	__sync_fetch_and_add(&v->inuse_objects_16, objects_16);
	sum = __sync_fetch_and_add(&v->inuse_bytes_8, bytes_8) + bytes_8;
	peak_raise(&v->peak_bytes_8, &v->peak_ns, sum, now_ns);
	return true;
}

/* v is the value of the key. false: another thread has taken it out. */
static __always_inline bool instance_del(const struct ht_instance_key *key,
					 const struct ht_instance *v)
{
	__u32 tgid = v->owner_tgid, generation = v->owner_generation;

	if (bpf_map_delete_elem(&instances, key))
		return false;
	share_give(tgid, generation, HT_SHARED_INSTANCES);
	return true;
}

/* Forget an instance that has exited and is empty. Done by the second of the exit and the last free. Both may
 * see both; the map lets only one of them take it out. */
static __always_inline void instance_end(const struct ht_instance_key *key,
					 const struct ht_instance *v)
{
	if (instance_del(key, v))
		stat_inc(HT_STAT_INSTANCES_ENDED);
}

/* User space considers it over. 1: it has been taken out. */
static __always_inline int instance_sweep(__u32 task_slot, __u64 number)
{
	struct ht_instance_key key = { .task_slot = task_slot, .instance = number };
	struct ht_instance *v = instance_find(&key);

	return v && instance_del(&key, v);
}

static __noinline int instance_sub(__u32 task_slot, __u64 number, __s64 bytes_8, __s64 objects_16)
{
	struct ht_instance_key key = { .task_slot = task_slot, .instance = number };
	struct ht_instance *v = instance_find(&key);

	if (!v)
		return 0;
	__sync_fetch_and_add(&v->inuse_bytes_8, -bytes_8);
	if (__sync_fetch_and_add(&v->inuse_objects_16, -objects_16) == objects_16 &&
	    *(volatile __u32 *)&v->has_exited)
		instance_end(&key, v);
	return 0;
}

static __always_inline void instance_exit(__u32 task_slot, __u64 number)
{
	struct ht_instance_key key = { .task_slot = task_slot, .instance = number };
	struct ht_instance *v = instance_find(&key);

	if (!v) /* it has no samples */
		return;
	__sync_val_compare_and_swap(&v->has_exited, 0, 1);
	if (*(volatile __s64 *)&v->inuse_objects_16 == 0)
		instance_end(&key, v);
}

#endif
