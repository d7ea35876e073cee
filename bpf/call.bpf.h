/* SPDX-License-Identifier: MIT */
/*
 * call.bpf.h - one call of the allocator: from its entry to its return.
 *
 * At entry the size is known and the stack is the caller's: the draw, the stack walk and, for realloc, taking
 * the old block out, happen there. The new address is known at return. In between the call waits in `pending`,
 * found again by {thread, stack pointer}: at the function's entry rsp points at the return address, and after
 * the return it is exactly 8 more.
 *
 * One allocation may go through several probed functions: calloc -> malloc; a library in front of the
 * allocator; the library's operator new, which calls libstdc++'s, which calls the library's malloc. The
 * outermost call is the allocation. Outer and inner calls are drawn independently, and inner calls that are
 * drawn are dropped, so the kept samples are right on average in either case. An inner call is recognised by
 * what is on the stack while it runs, and by nothing that an earlier call left behind:
 *
 *   rows of functions that allocate and are probed have a mark, and the walk of a sample's stack,
 *     which is needed anyway, ends at the first one (but for one below a signal handler);
 *   a function that *jumps*, to the inner function or to code that calls it, is not on the stack, but
 *     its caller's return address is, and our return probe has put a trampoline there. Functions that may
 *     do so (a flag of the site) are followed to their return whether kept or not: so a trampoline, met
 *     at the inner call's own entry or on the walk, belongs to a call that waits in `pending`;
 *   some functions of allocators jump without being followed, because that would cost too much: there the
 *     return address tells, by its place in the file (struct ht_file). The walk then looks whether another call
 *     is open (walk_is_inner()): a place alone loses allocations when it is misjudged.
 *
 * Calls that never return (longjmp out of a signal handler, a thread that dies) leave an entry behind. It is
 * dropped when a newer call has the same slot, when the thread's table is full (slots in turn) and when the
 * thread ends. With session attachment a stale entry cannot meet a return at all; with separate entry and
 * return probes every entry clears its slot first.
 *
 * With separate probes every call returns here, kept or not. A counting filter by stack pointer says that no
 * thread waits for this return, without a look-up and without a helper to ask which thread runs. Only a
 * thread's own hits, its exec and its end change what it waits for, and a hit of a thread is over before its
 * next one: so 0 is certain.
 */
#ifndef HT_CALL_BPF_H
#define HT_CALL_BPF_H

const volatile bool ht_realloc_keeps_scope; /* else realloc charges the current scope */

/*
 * Argument number n. All are read and one is chosen, through an empty asm: otherwise clang would choose the
 * offset and load once, and the verifier allows only constant offsets into the context.
 */
static __always_inline __u64 call_arg(struct pt_regs *ctx, __u32 n)
{
	__u64 arg0 = PT_REGS_PARM1(ctx), arg1 = PT_REGS_PARM2(ctx), arg2 = PT_REGS_PARM3(ctx);
	__u64 arg3 = PT_REGS_PARM4(ctx), arg4 = PT_REGS_PARM5(ctx);

	asm volatile("" : "+r"(arg0), "+r"(arg1), "+r"(arg2), "+r"(arg3), "+r"(arg4));
	switch (n) {
	case 0:
		return arg0;
	case 1:
		return arg1;
	case 2:
		return arg2;
	case 3:
		return arg3;
	default:
		return arg4;
	}
}

/* Requested bytes. false: the product overflows, so the call can only fail. */
static __always_inline bool call_size(struct pt_regs *ctx, __u64 cookie, __u64 *ret_bytes)
{
	__u64 size = call_arg(ctx, HT_COOKIE_SIZE_ARG(cookie)), cnt;

	if (HT_COOKIE_COUNT_ARG(cookie) != HT_ARG_NONE) {
		cnt = call_arg(ctx, HT_COOKIE_COUNT_ARG(cookie));
		if (((size | cnt) >> 32) && cnt) {
			__u64 limit = ~0ULL / cnt;

			/* Hidden from clang, which would make it a 128-bit product. */
			asm volatile("" : "+r"(limit));
			if (size > limit)
				return false;
		}
		size *= cnt;
	}
	*ret_bytes = size;
	return true;
}

static __always_inline struct ht_call *calls_find(struct ht_calls *calls, __u64 sp)
{
	for (__u32 i = 0; i < HT_PENDING_CAP; i++)
		if (calls->call[i].sp == sp)
			return &calls->call[i];
	return NULL;
}

__u32 calls_filter[HT_CALLS_FILTER_CNT];

/* At a call the stack is aligned to 16 bytes; the stacks of threads are MiBs apart. */
static __always_inline __u32 *calls_filter_slot(__u64 sp)
{
	return &calls_filter[(sp >> 4 ^ sp >> 19) & (HT_CALLS_FILTER_CNT - 1)];
}

/* May a call with this stack pointer at its entry be waiting for its return? */
static __always_inline bool calls_may_wait(__u64 sp)
{
	return *(volatile __u32 *)calls_filter_slot(sp) != 0;
}

/* Take a slot for a call of the current thread; when none is free, the next in turn is reused. */
static __always_inline struct ht_call *calls_take(struct ht_calls *calls, __u64 sp)
{
	struct ht_call *c = calls_find(calls, 0);

	if (!c) {
		stat_inc(HT_STAT_PENDING_STALE);
		c = &calls->call[calls->next++ % HT_PENDING_CAP];
		__sync_fetch_and_add(calls_filter_slot(c->sp), -1);
	}
	__sync_fetch_and_add(calls_filter_slot(sp), 1);
	c->sp = sp;
	return c;
}

/* Free the slot: the current thread does not wait for this call any more. */
static __always_inline void calls_give(struct ht_call *c)
{
	__sync_fetch_and_add(calls_filter_slot(c->sp), -1);
	c->sp = 0;
}

/* The kind of caller, by the return address. */
#define CALLER_PLAIN 0
#define CALLER_INNER 1 /* the allocator itself, by its place: to be proved by the walk */
#define CALLER_PROBED 2 /* the allocator itself */
#define CALLER_NOT_A_FILE 3 /* a return probe's trampoline, or code made at run time */

static __always_inline int caller_kind(struct ht_walk *w, struct pt_regs *ctx,
				       const struct ht_target *t, __u64 ret_addr)
{
	walk_start(w, ctx, t);
	if (walk_find_mapping(w, ret_addr))
		return CALLER_NOT_A_FILE;
	switch (file_is_inner(w->map.file_id, ret_addr - w->map.bias)) {
	case INNER_BY_PLACE:
		return CALLER_INNER;
	case INNER_PROBED:
		return CALLER_PROBED;
	default:
		return CALLER_PLAIN;
	}
}

/* Return the kind of caller. *ret_addr: the return address of the call that is being entered. */
static __always_inline int call_caller(struct ht_walk *w, struct pt_regs *ctx,
				       const struct ht_target *t, struct ht_calls *calls,
				       __u64 *ret_addr)
{
	__u64 sp = PT_REGS_SP(ctx);
	int caller;

	if (walk_read_stack(w, sp, ret_addr))
		stat_inc(HT_STAT_READ_FAULT);
	caller = caller_kind(w, ctx, t, *ret_addr);
	if (calls && calls->delegate_sp == sp) {
		calls->delegate_sp = 0;
		if (caller == CALLER_NOT_A_FILE) {
			*ret_addr = calls->delegate_ret_addr;
			caller = caller_kind(w, ctx, t, *ret_addr);
		}
	}
	return caller;
}

/* Was this entry reached by a jump from a waiting call? Also clears the entry that a call that never returned
 * left in this slot. */
static __always_inline bool calls_is_tail(struct ht_calls *calls, __u64 sp, int caller)
{
	struct ht_call *same = calls_find(calls, sp);

	if (!same)
		return false;
	if (caller == CALLER_NOT_A_FILE)
		return true;
	calls_give(same);
	stat_inc(HT_STAT_PENDING_STALE);
	return false;
}

/* The call is not followed to its return: leave nothing that could mislead later calls. */
static __always_inline bool call_pass(struct pt_regs *ctx, const struct ht_target *t,
				      bool always_returns)
{
	__u64 sp = PT_REGS_SP(ctx), ret_addr = 0;
	struct ht_calls *calls;
	struct ht_walk *w;
	__u32 tid;

	/* This call could only mislead a call that waits with the same stack pointer. */
	if (!always_returns || !calls_may_wait(sp))
		return false;
	tid = bpf_get_current_pid_tgid();
	calls = bpf_map_lookup_elem(&pending, &tid);
	if (!calls || !calls_find(calls, sp))
		return false;
	w = walk_claim();
	if (!w) {
		stat_inc(HT_STAT_SCRATCH_BUSY);
		return false;
	}
	calls_is_tail(calls, sp, call_caller(w, ctx, t, calls, &ret_addr));
	walk_release(w);
	return false;
}

/*
 * realloc(NULL, n) that jumps to malloc: record the inner call, unless a waiting call has jumped here. If a
 * return probe (ours, or another tool's on the same function) has replaced the return address by then, the
 * inner call sees a trampoline: so the true address is left for it.
 */
static __always_inline bool call_delegate(struct pt_regs *ctx, const struct ht_target *t)
{
	struct ht_calls *calls = calls_get(bpf_get_current_pid_tgid());
	__u64 sp = PT_REGS_SP(ctx), ret_addr = 0;
	struct ht_walk *w;

	if (!calls)
		return false;
	w = walk_claim();
	if (!w) {
		stat_inc(HT_STAT_SCRATCH_BUSY);
		return false;
	}
	if (!calls_is_tail(calls, sp, call_caller(w, ctx, t, calls, &ret_addr))) {
		calls->delegate_sp = sp;
		calls->delegate_ret_addr = ret_addr;
	}
	walk_release(w);
	return false;
}

/* Note the call of this entry in `pending`; NULL when it is not followed to its return. *ret_is_inner: it is a
 * part of another call, and, if it is followed all the same, so it seems by its place. */
static __always_inline struct ht_call *call_note(struct ht_walk *w, struct pt_regs *ctx,
						 const struct ht_target *t, __u64 cookie,
						 bool is_drawn, bool *ret_is_inner)
{
	struct ht_calls *calls = calls_get(bpf_get_current_pid_tgid());
	__u64 sp = PT_REGS_SP(ctx), ret_addr = 0;
	int caller = call_caller(w, ctx, t, calls, &ret_addr);
	struct ht_call *c;

	*ret_is_inner = caller == CALLER_INNER || caller == CALLER_PROBED;
	if (!calls) {
		stat_inc(HT_STAT_PENDING_FULL);
		return NULL;
	}
	if (calls_is_tail(calls, sp, caller)) {
		*ret_is_inner = true;
		return NULL;
	}
	/* If the function jumps on, the next entry may find a trampoline instead of this address. */
	if (*ret_is_inner && !(is_drawn && caller == CALLER_INNER) &&
	    !(HT_COOKIE_FLAGS(cookie) & HT_SITE_TAIL_CALLS))
		return NULL;
	if (caller == CALLER_INNER)
		w->inner_file_id = w->map.file_id;
	c = calls_take(calls, sp);
	c->ret_addr = ret_addr;
	c->cookie = cookie;
	c->is_kept = c->has_old = 0;
	return c;
}

/* Record everything about a sample but its size; is_entry: as in stack_capture(). false: the call is a part of
 * another one. */
static __always_inline bool call_describe(struct ht_walk *w, struct pt_regs *ctx,
					  struct ht_target *t, struct ht_live *fresh,
					  __u32 nest_mask, bool is_entry)
{
	if (!stack_capture(w, ctx, t, nest_mask, is_entry, &fresh->stack_id)) {
		stat_inc(HT_STAT_NESTED);
		return false;
	}
	stat_inc(HT_STAT_SAMPLES);
	fresh->tid = bpf_get_current_pid_tgid();
	fresh->instance = w->tag.instance;
	context_intern(w, fresh);
	return true;
}

/* Begin a call that is kept, that takes a sampled block out, or that may jump on. true: its return must be
 * seen. nest_mask: rows (HT_ROW_*) of functions that would have seen an outer call of this size. */
static __always_inline bool call_begin(struct pt_regs *ctx, struct ht_target *t, __u64 cookie,
				       __u64 size_bytes, __u32 threshold, bool keeps_all,
				       __u32 nest_mask, bool always_returns,
				       const struct ht_live_key *old_key)
{
	bool is_inner = false, may_have_old;
	struct ht_walk *w;
	struct ht_call *c;

	if (!always_returns && thread_is_dispatching(bpf_get_current_task_btf())) {
		if (threshold)
			stat_inc(HT_STAT_DISPATCHED);
		return false;
	}
	w = walk_claim();
	if (!w) {
		stat_inc(HT_STAT_SCRATCH_BUSY);
		return false;
	}
	c = call_note(w, ctx, t, cookie, threshold != 0, &is_inner);
	if (is_inner && !(c && threshold && w->inner_file_id)) {
		stat_inc(HT_STAT_NESTED);
		goto out;
	}
	if (!c)
		goto out;
	w->threshold = threshold;
	w->keeps_all = keeps_all;
	may_have_old = HT_COOKIE_OP(cookie) != HT_OP_ALLOC && old_key->addr;
	c->ptr = old_key->addr;
	c->generation = old_key->generation;
	c->is_kept = threshold != 0;
	/* If the call turns out to be a part of another one, that one has the old block. */
	c->has_old = !is_inner && may_have_old && live_take(old_key, &c->old);
	c->fresh.size_bytes = size_bytes;
	c->fresh.threshold = threshold;
	if (threshold && !tags_read(w)) {
		stat_inc(HT_STAT_PAUSED);
		c->is_kept = 0;
	}
	if (c->is_kept && !call_describe(w, ctx, t, &c->fresh, nest_mask, true))
		c->is_kept = 0;
	if (is_inner && c->is_kept && may_have_old)
		c->has_old = live_take(old_key, &c->old);
	if (!c->is_kept && !c->has_old && !(HT_COOKIE_FLAGS(cookie) & HT_SITE_TAIL_CALLS)) {
		/* paused, a part of another call, or another thread took the block out meanwhile */
		calls_give(c);
		c = NULL;
	}
out:
	walk_release(w);
	return c;
}

/* A program for one kind of site has its cookie, without file and sharing, as a constant; others ask for the
 * cookie at every hit. */
#define SITE_ANY 0

/*
 * Entry of an allocating function. true: its return must be seen. always_returns: the return probe fires
 * whatever this returns (no session attachment).
 */
static __always_inline bool call_enter(struct pt_regs *ctx, __u64 site, bool always_returns)
{
	struct ht_live_key key = {};
	__u64 cookie, size_bytes;
	struct ht_target *t;
	struct ht_rate *rate;
	struct ht_live old;
	__u32 threshold, tgid, op, nest_mask;
	bool may_jump;

	t = target_of_hit_unless(HT_TARGET_SAMPLES, &tgid);
	if (!t)
		return false;
	cookie = site ? site : bpf_get_attach_cookie(ctx);
	if (sharings_differ() && !sharing_counts(ctx, site ? bpf_get_attach_cookie(ctx) : cookie))
		return false;
	hit_count(t, HIT_ALLOC, cookie, always_returns);
	rate = bpf_map_lookup_elem(&rates, &t->rate_idx);
	if (!rate || !call_size(ctx, cookie, &size_bytes))
		return call_pass(ctx, t, always_returns);
	threshold = sample_draw(rate, size_bytes);
	op = HT_COOKIE_OP(cookie);
	may_jump = HT_COOKIE_FLAGS(cookie) & HT_SITE_TAIL_CALLS;
	if (op == HT_OP_ALLOC && !threshold && !may_jump)
		return call_pass(ctx, t, always_returns);

	key.tgid = tgid;
	key.generation = t->generation;
	if (HT_COOKIE_PTR_ARG(cookie) != HT_ARG_NONE)
		key.addr = call_arg(ctx, HT_COOKIE_PTR_ARG(cookie));
	if (op == HT_OP_REALLOC) {
		if (!key.addr && (HT_COOKIE_FLAGS(cookie) & HT_SITE_NULL_DELEGATES))
			return call_delegate(ctx, t);
		if (key.addr && !size_bytes && (HT_COOKIE_FLAGS(cookie) & HT_SITE_ZERO_FREES)) {
			if (live_take(&key, &old))
				live_freed(&key, &old);
			return call_pass(ctx, t, always_returns);
		}
	}
	if ((HT_COOKIE_FLAGS(cookie) & HT_SITE_THROWS) && size_bytes > rate->throw_limit_bytes) {
		stat_inc(HT_STAT_THROW_SKIPPED);
		return call_pass(ctx, t, always_returns);
	}
	if (!threshold && !may_jump && !(key.addr && live_may_have(&key)))
		return call_pass(ctx, t, always_returns);
	nest_mask = HT_ROW_ALLOC | (size_bytes <= rate->throw_limit_bytes ? HT_ROW_THROWS : 0);
	return call_begin(ctx, t, site ? bpf_get_attach_cookie(ctx) : cookie, size_bytes, threshold,
			  rate->rate_bytes <= 1, nest_mask, always_returns, &key);
}

/* Address of the new block; 0: the call failed. */
static __always_inline __u64 call_result(struct pt_regs *ctx, const struct ht_call *c)
{
	__u64 rc = PT_REGS_RC(ctx), addr = 0;

	if (HT_COOKIE_OP(c->cookie) == HT_OP_RESIZE)
		return rc >= c->fresh.size_bytes ? c->ptr : 0;
	if (HT_COOKIE_RET(c->cookie) == HT_RET_VALUE)
		return rc;
	if ((__u32)rc)
		return 0;
	if (read_user_u64(&addr, c->ptr))
		stat_inc(HT_STAT_READ_FAULT);
	return addr;
}

static __always_inline void call_end(struct pt_regs *ctx, const struct ht_target *t, __u32 tgid,
				     struct ht_call *c)
{
	__u64 addr = call_result(ctx, c);
	struct ht_live_key key = {};

	key.tgid = tgid;
	key.generation = t->generation;
	key.addr = addr;
	if (!addr) {
		stat_inc(HT_STAT_FAILED_CALLS);
		if (c->has_old) { /* realloc failed: the old block is still there */
			key.addr = c->ptr;
			if (t->is_alloc_only)
				live_drop(&key, &c->old);
			else
				live_insert(&key, &c->old);
		}
		return;
	}
	if (c->has_old) {
		if (ht_realloc_keeps_scope) {
			c->fresh.context_id = c->old.context_id;
			c->fresh.scope_slot = c->old.scope_slot;
			c->fresh.instance = c->old.instance;
		}
		live_freed(&key, &c->old);
	}
	if (c->is_kept)
		live_add(&key, &c->fresh, t->is_alloc_only);
}

static __always_inline void call_return(struct pt_regs *ctx, bool always_returns)
{
	__u64 sp = PT_REGS_SP(ctx) - 8; /* at the entry */
	struct ht_calls *calls;
	struct ht_target *t;
	struct ht_call *c;
	__u32 tgid, tid;

	if (always_returns && !calls_may_wait(sp))
		return;
	t = target_of_event(&tgid);
	if (!t)
		return;
	if (!always_returns)
		hit_count_return(t);
	tid = bpf_get_current_pid_tgid();
	calls = bpf_map_lookup_elem(&pending, &tid);
	c = calls ? calls_find(calls, sp) : NULL;
	if (!c) {
		/* With separate probes most returns are of calls that were not kept. */
		if (!always_returns)
			stat_inc(HT_STAT_PENDING_LOST);
		return;
	}
	/* Where two sharings are in place, the return probe of the other one comes here, too. */
	if (HT_COOKIE_SHARING(c->cookie) != HT_COOKIE_SHARING(bpf_get_attach_cookie(ctx)))
		return;
	/* The references of an ended image's call, above all its slots, may have a new owner. */
	if ((c->is_kept || c->has_old) && c->generation == t->generation)
		call_end(ctx, t, tgid, c);
	calls_give(c);
}

static __always_inline void call_free(struct pt_regs *ctx, __u64 site)
{
	struct ht_live_key key = {};
	struct ht_target *t;
	struct ht_live old;
	__u64 cookie;

	t = target_of_hit(&key.tgid);
	if (!t)
		return;
	cookie = site ? site : bpf_get_attach_cookie(ctx);
	if (HT_COOKIE_OP(cookie) != HT_OP_FREE)
		return; /* a link that is only there to clean up after a fork */
	hit_count(t, HIT_FREE, cookie, false);
	key.generation = t->generation;
	key.addr = call_arg(ctx, HT_COOKIE_PTR_ARG(cookie));
	if (live_take(&key, &old))
		live_freed(&key, &old);
}

#endif
