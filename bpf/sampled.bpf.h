/* SPDX-License-Identifier: MIT */
/*
 * sampled.bpf.h - samples that a sampler in the process itself has drawn.
 *
 * A program may count its allocations itself and report only those that it keeps, by two probes: alloc(ptr,
 * size, weight), and free(ptr) for a block that was kept (user/alloc/file_sampler.h says which contracts are
 * read). The draw has been made by then, and an argument tells what the sample stands for: weight = size / p.
 * All later steps are as for our own draws.
 *
 * p goes into the threshold that is stored with the sample, p = threshold / 2^32. Its rounding is half a part
 * in `threshold`, which is above 4 000 unless a block stands for a million times its size. A weight below the
 * size is no size / p; it comes from emitters that count how many of their intervals end in a block, whose sum
 * is right all the same. Then the block counts as `weight` bytes.
 *
 * The first sample says that the sampler is awake. From then on hits of the allocator's probes do not count
 * (HT_TARGET_SAMPLES), because they would count twice; user space detaches these probes, and forgets what they
 * found so far.
 */
#ifndef HT_SAMPLED_BPF_H
#define HT_SAMPLED_BPF_H

static __always_inline bool operand_reg(struct pt_regs *ctx, __u16 off, __u64 *ret)
{
	/* The verifier does not let a program read its context at an offset that is not constant. */
	return off <= sizeof(*ctx) - sizeof(*ret) &&
	       !bpf_probe_read_kernel(ret, sizeof(*ret), (const char *)ctx + off);
}

static __always_inline __u64 operand_narrow(__u64 value, const struct ht_operand *op)
{
	__u32 shift = 64 - 8 * (op->bytes & 15);

	if (!op->bytes || op->bytes > 8)
		return 0;
	shift &= 63;
	value <<= shift;
	return op->is_signed ? (__u64)((__s64)value >> shift) : value >> shift;
}

/* Read one argument of a probe. 0: it cannot be read. */
static __noinline int sampled_operand(struct pt_regs *ctx, __u32 site_idx, __u32 which, __u64 *ret)
{
	const struct ht_sampled_site *site = bpf_map_lookup_elem(&sampled_sites, &site_idx);
	const struct ht_operand *op;
	__u64 value = 0, idx = 0;

	if (!site || !ret || !ctx)
		return 0;
	op = which == 0 ? &site->ptr :
	     which == 1 ? &site->size :
	     which == 2 ? &site->weight :
			  &site->entry;
	*ret = 0;
	switch (op->kind) {
	case HT_OPERAND_CONST:
		*ret = op->value;
		return 1;
	case HT_OPERAND_REG:
		if (!operand_reg(ctx, op->base_off, &value))
			return 0;
		break;
	case HT_OPERAND_MEM:
		if (!operand_reg(ctx, op->base_off, &value))
			return 0;
		if (op->scale && !operand_reg(ctx, op->index_off, &idx))
			return 0;
		if (read_user_u64(&value, value + idx * op->scale + op->value)) {
			stat_inc(HT_STAT_READ_FAULT);
			return 0;
		}
		break;
	default:
		return 0;
	}
	*ret = operand_narrow(value, op);
	return 1;
}

/* Return p = size / weight as a threshold; *size_bytes becomes what the block counts for. 0: invalid. */
static __always_inline __u32 sampled_threshold(__u64 *size_bytes, __u64 weight)
{
	__u64 limit = *size_bytes > 1 ? *size_bytes : 1, size, threshold;

	if (!weight || weight > HT_SAMPLED_WEIGHT_CAP)
		return 0;
	if (weight == *size_bytes)
		return HT_KEEP_ALWAYS;
	if (weight < *size_bytes) {
		*size_bytes = weight;
		return HT_KEEP_ALWAYS - 1; /* not certain: nothing about it is called exact */
	}
	/* The limit of error sums, see heaptap/variance.h. */
	limit = limit > 1ULL << ht_base_log2 ? limit : 1ULL << ht_base_log2;
	if (weight >> HT_VARIANCE_RANGE_LOG2 > limit)
		return 0;
	size = *size_bytes ? *size_bytes : 1;
	if (size >> 31) {
		size >>= 16;
		weight >>= 16;
	}
	threshold = (size << 32) / (weight ? weight : 1);
	if (threshold >= HT_KEEP_ALWAYS)
		return HT_KEEP_ALWAYS;
	return threshold ? threshold : 1;
}

/* For a small block, size / p is R + size / 2, up to a part in 10 000. */
static __always_inline void sampled_rate(const struct ht_target *t, __u64 size_bytes, __u64 weight)
{
	struct ht_hits *h = bpf_map_lookup_elem(&hits, &t->hits_idx);

	if (h && size_bytes < weight >> 5)
		h->sampler_rate_bytes = weight - size_bytes / 2;
}

/* Does the stack begin at the entry of a function (true), or at the probe? */
static __always_inline bool sampled_begin(struct ht_walk *w, struct pt_regs *ctx, __u32 site_idx)
{
	const struct ht_sampled_site *site = bpf_map_lookup_elem(&sampled_sites, &site_idx);

	if (!site || site->entry.kind == HT_OPERAND_NONE)
		return false;
	if (!sampled_operand(ctx, site_idx, 3, &w->begin_pc))
		w->begin_pc = 0;
	w->begin_sp = PT_REGS_SP(ctx) + site->stack_bytes;
	return w->begin_pc != 0;
}

static __always_inline void sampled_alloc(struct pt_regs *ctx, struct ht_target *t,
					  struct ht_live_key *key, __u32 site_idx)
{
	struct ht_live fresh = {};
	struct ht_walk *w;
	__u64 weight = 0;
	bool is_entry;

	if (!sampled_operand(ctx, site_idx, 1, &fresh.size_bytes) ||
	    !sampled_operand(ctx, site_idx, 2, &weight) || !key->addr)
		goto bad;
	fresh.threshold = sampled_threshold(&fresh.size_bytes, weight);
	if (!fresh.threshold)
		goto bad;
	sampled_rate(t, fresh.size_bytes, weight);
	if (!(t->flags & HT_TARGET_SAMPLES))
		__sync_fetch_and_or(&t->flags, HT_TARGET_SAMPLES);
	w = walk_claim();
	if (!w) {
		stat_inc(HT_STAT_SCRATCH_BUSY);
		return;
	}
	walk_start(w, ctx, t);
	is_entry = sampled_begin(w, ctx, site_idx);
	if (!tags_read(w)) {
		stat_inc(HT_STAT_PAUSED);
		walk_release(w);
		return;
	}
	call_describe(w, ctx, t, &fresh, 0, is_entry);
	walk_release(w);
	live_add(key, &fresh, t->is_alloc_only);
	return;
bad:
	stat_inc(HT_STAT_SAMPLED_BAD);
}

static __always_inline void sampled_free(const struct ht_live_key *key)
{
	struct ht_live old;

	if (live_take(key, &old))
		live_freed(key, &old);
}

static __always_inline void sampled_hit(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct ht_live_key key = {};
	__u32 owner_tgid = HT_COOKIE_SAMPLED_OWNER(cookie);
	struct ht_target *t = owner_tgid ? target_of_tap(owner_tgid) : target_of_hit(&key.tgid);
	bool is_free = HT_COOKIE_OP(cookie) == HT_OP_SAMPLED_FREE;
	__u32 site_idx = HT_COOKIE_SAMPLED_IDX(cookie);

	if (!t || (!is_free && HT_COOKIE_OP(cookie) != HT_OP_SAMPLED))
		return;
	hit_count(t, is_free ? HIT_FREE : HIT_ALLOC, 0, false);
	key.tgid = t->tgid;
	key.generation = t->generation;
	if (!sampled_operand(ctx, site_idx, 0, &key.addr)) {
		stat_inc(HT_STAT_SAMPLED_BAD);
		return;
	}
	if (is_free)
		sampled_free(&key);
	else
		sampled_alloc(ctx, t, &key, site_idx);
}

#endif
