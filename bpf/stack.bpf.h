/* SPDX-License-Identifier: MIT */
/*
 * stack.bpf.h - the call stack of the current thread, without frame pointers.
 *
 * Distribution libraries and release builds have no frame pointers, so each frame is stepped
 * over with the rows that user space compiled from .eh_frame: pc -> mapping of the process
 * (binary search) -> file and vaddr -> 64 KiB page -> row (binary search) -> CFA -> return address
 * and caller's rbp, read from user memory. The mapping is found by mapping.bpf.h.
 *
 * Code that the process made at run time has no table: its frames are stepped over by frame pointer, or by the
 * code behind the call (walk_jit_frame()).
 *
 * The result for a pc is remembered (step.bpf.h): two searches through tables of many megabytes cost more than
 * the rest of a frame.
 *
 * The searches, here and in mapping.bpf.h, have no branches on the data: the verifier follows every branch, and
 * sixteen of them in a row are 65 536 paths, while `pos += half & mask` is one.
 */
#ifndef HT_STACK_BPF_H
#define HT_STACK_BPF_H

/* Find the row for vaddr in the file of the current mapping. */
static __always_inline int walk_find_row(const struct ht_walk *w, __u64 vaddr, struct ht_row *ret)
{
	__u32 file_id = w->map.file_id, page_idx, zero = 0, base, cnt;
	__u16 lo = vaddr;
	struct ht_shard *shard;
	struct ht_file *file;
	struct ht_page *page;
	void *inner;
	__u64 n;

	file = bpf_map_lookup_elem(&files, &file_id);
	if (!file || !file->page_cnt)
		return HT_END_NO_TABLE;
	n = (vaddr >> HT_PAGE_SHIFT) - file->first_page;
	if (n >= file->page_cnt)
		return HT_END_NO_ROW;
	page_idx = file->pages_base + n;
	page = bpf_map_lookup_elem(&pages, &page_idx);
	if (!page || !page->row_cnt)
		return HT_END_NO_ROW;
	inner = bpf_map_lookup_elem(&rows, &page->shard);
	if (!inner)
		return HT_END_NO_TABLE;
	shard = bpf_map_lookup_elem(inner, &zero);
	if (!shard)
		return HT_END_NO_TABLE;
	n = (vaddr >> HT_BLOCK_SHIFT) & (HT_BLOCK_CNT - 1);
	base = page->first + page->block[n];
	cnt = page->block[n + 1] - page->block[n] + 1;
	for (int i = 0; i < HT_BLOCK_SHIFT + 1; i++) {
		__u32 half = cnt >> 1;
		__u32 idx = (base + half) & (HT_SHARD_ROWS - 1);
		/* all ones when pc_lo <= lo */
		__s64 mask = ((__s64)shard->row[idx].pc_lo - lo - 1) >> 63;

		if (!half)
			break;
		asm volatile("" : "+r"(mask));
		base += half & mask;
		cnt -= half;
	}
	*ret = shard->row[base & (HT_SHARD_ROWS - 1)];
	return 0;
}

/* Offsets in struct ucontext of the x86-64 kernel ABI, from the place that rsp points at in a handler's
 * restorer: uc_mcontext's gregs. */
#define UCONTEXT_RBP 120
#define UCONTEXT_RSP 160
#define UCONTEXT_RIP 168

static __always_inline int walk_signal_frame(struct ht_walk *w)
{
	__u64 sp = w->sp;

	if (read_user_u64(&w->pc, sp + UCONTEXT_RIP) || read_user_u64(&w->bp, sp + UCONTEXT_RBP) ||
	    read_user_u64(&w->sp, sp + UCONTEXT_RSP))
		return 1 + HT_END_READ_FAULT;
	w->is_exact_pc = 1;
	/* The interrupted code may be an allocation: the handler's own allocations are not a part of it. */
	w->nest_mask = 0;
	return 0;
}

/* Is there code of a known mapping at pc? Most often the answer is remembered. */
static __always_inline bool walk_is_code(struct ht_walk *w, __u64 pc)
{
	struct ht_row row;
	__u64 frame;

	return (pc >= w->map.start_addr && pc < w->map.end_addr) ||
	       step_recall(step_hash(w->salt, pc, 0), &frame, &row) || !walk_find_mapping(w, pc);
}

/* Is there a call instruction before addr, direct or through a register or memory? */
static __always_inline bool walk_is_return(__u64 addr)
{
	__u8 p[8];

	if (bpf_probe_read_user(p, sizeof(p), (const void *)(addr - 8)))
		return false;
	return p[3] == 0xe8 || (p[6] == 0xff && (p[7] & 0x38) == 0x10) ||
	       (p[5] == 0xff && (p[6] & 0x38) == 0x10) || (p[4] == 0xff && (p[5] & 0x38) == 0x10) ||
	       (p[2] == 0xff && (p[3] & 0x38) == 0x10) || (p[1] == 0xff && (p[2] & 0x38) == 0x10);
}

/*
 * A chain link at rbp: {caller's rbp, return address}. Trusted only when it moves up the stack and leads into a
 * known mapping. The caller of code made at run time may have something else in rbp: then there must be a call
 * before the return address.
 */
static __always_inline int walk_frame_pointer(struct ht_walk *w, int why)
{
	__u64 link[2];

	if (w->is_first || w->bp < w->sp || (w->bp & 7) ||
	    bpf_probe_read_user(link, sizeof(link), (const void *)w->bp))
		return 1 + why;
	if (link[0] == 0 && link[1] == 0)
		return 1 + HT_END_COMPLETE;
	if (link[0] && link[0] <= w->bp && (why != HT_END_JIT || !walk_is_return(link[1])))
		return 1 + why;
	if (!walk_is_code(w, link[1] - 1))
		return 1 + why;
	w->pc = link[1];
	w->sp = w->bp + 16;
	w->bp = link[0];
	w->is_exact_pc = 0;
	stat_inc(HT_STAT_FRAMES_FP);
	return 0;
}

/* The largest plausible frame of run-time code: a thread's stack is not larger. */
#define JIT_FRAME_BYTES_CAP (8 << 20)

/*
 * A frame of code made at run time, whose only table would be in the process. The code after the call says all
 * when the function ends there, as small stubs do (CPython's perf trampoline is one): "add $n,%rsp; ret".
 * Otherwise rbp has to be a frame pointer.
 */
static __always_inline int walk_jit_frame(struct ht_walk *w)
{
	__u64 code, ra, cfa = 0;

	if (w->is_first || read_user_u64(&code, w->pc))
		return 1 + HT_END_JIT;
	if ((code & 0xff80ffffffULL) == 0xc300c48348ULL)
		cfa = w->sp + (code >> 24 & 0xff) + 8;
	if (!cfa && w->bp - w->sp > JIT_FRAME_BYTES_CAP)
		return 1 + HT_END_JIT;
	if (!cfa)
		return walk_frame_pointer(w, HT_END_JIT);
	if ((cfa & 7) || read_user_u64(&ra, cfa - 8) || !walk_is_code(w, ra - 1))
		return 1 + HT_END_JIT;
	w->pc = ra;
	w->sp = cfa;
	w->is_exact_pc = 0;
	return 0;
}

static __always_inline long walk_cfa(const struct ht_walk *w, const struct ht_row *row, __u64 pc,
				     __u64 *ret_cfa)
{
	__s64 off = (__s64)row->cfa_off * 8;

	switch (row->cfa) {
	case HT_CFA_RSP:
		*ret_cfa = w->sp + off;
		return 0;
	case HT_CFA_RBP:
		*ret_cfa = w->bp + off;
		return 0;
	case HT_CFA_PLT:
		*ret_cfa = w->sp + 8 + ((pc & 15) >= (__u16)row->cfa_off ? 8 : 0);
		return 0;
	case HT_CFA_DEREF_RSP:
		return read_user_u64(ret_cfa, w->sp + off);
	default: /* HT_CFA_DEREF_RBP */
		return read_user_u64(ret_cfa, w->bp + off);
	}
}

#define RETURN_PROBES_CAP 32 /* calls with return probes that a thread is in */

/* A foreign return probe has replaced the slot at sp - 8: the kernel knows the old content. */
__noinline int walk_foreign_return(struct ht_walk *w)
{
	const struct return_instance *ri;
	__u64 stack, ret_addr = 0;

	if (!w)
		return -1;
	ri = BPF_CORE_READ(bpf_get_current_task_btf(), utask, return_instances);
	for (int i = 0; i < RETURN_PROBES_CAP && ri; i++) {
		stack = BPF_CORE_READ(ri, stack);
		if (stack == w->sp - 8) {
			ret_addr = BPF_CORE_READ(ri, orig_ret_vaddr);
			break;
		}
		ri = BPF_CORE_READ(ri, next);
	}
	if (!ret_addr || walk_find_mapping(w, ret_addr - 1))
		return -1;
	w->pc = ret_addr;
	return 0;
}

/* The slot at sp - 8 holds a return probe's trampoline: the true address was noted at entry. Behind the first
 * frame it belongs to an outer call. */
static __always_inline int walk_hijacked(struct ht_walk *w)
{
	__u32 tid = w->tid; /* on the stack, see walk_find_mapping() */
	struct ht_calls *calls = bpf_map_lookup_elem(&pending, &tid);

	for (int i = 0; calls && i < HT_PENDING_CAP; i++) {
		if (calls->call[i].sp && calls->call[i].sp == w->sp - 8) {
			w->is_nested = w->nest_mask && w->stack.frame_cnt > 1 ? NESTED_WAITS : 0;
			w->pc = calls->call[i].ret_addr;
			if (!walk_find_mapping(w, w->pc - 1))
				return 0;
			break;
		}
	}
	return walk_foreign_return(w);
}

/*
 * Read a word of the stack. Most of the cost of a read of user memory is the same for 8 bytes and for 512: so a
 * piece is read at once, with the words of the next frames. Near the stack's end the piece may not be readable,
 * but the word is.
 */
static __always_inline long walk_read_stack(struct ht_walk *w, __u64 addr, __u64 *ret)
{
	__u64 off = addr - w->window_addr;

	if (off > WALK_WINDOW_BYTES - 8) {
		if (bpf_probe_read_user(w->window, sizeof(w->window), (const void *)addr)) {
			w->window_addr = ~0ULL;
			return read_user_u64(ret, addr);
		}
		w->window_addr = addr;
		off = 0;
	}
	*ret = w->window[(off >> 3) & (WALK_WINDOW_CNT - 1)];
	return 0;
}

/* Read the return address and the caller's rbp, which is usually kept a little below it. */
static __always_inline int walk_read_caller(struct ht_walk *w, const struct ht_row *row, __u64 cfa,
					    __u64 *ret_ra, __u64 *ret_bp)
{
	__s64 off = row->rbp_off;
	__u8 rbp = row->rbp & HT_RBP_MASK;

	/* A later rule that needs an unknown rbp must fail, not use a stale one. */
	*ret_bp = rbp == HT_RBP_UNDEFINED ? 0 : w->bp;
	if (rbp == HT_RBP_AT_CFA && walk_read_stack(w, cfa + off * 8, ret_bp))
		return -1;
	if (rbp == HT_RBP_AT_RBP && read_user_u64(ret_bp, w->bp + off * 8))
		return -1;
	return walk_read_stack(w, cfa - 8, ret_ra) ? -1 : 0;
}

/* Look up the frame at w->pc and its row. 0; else 1 + HT_END_*, and *ret_frame is 0 when the pc is in no
 * mapping. */
static __always_inline int walk_look_up(struct ht_walk *w, __u64 hash, __u64 *ret_frame,
					struct ht_row *ret_row)
{
	bool is_own = true;
	__u64 pc = w->pc - !w->is_exact_pc;
	int err;

	if (pc < w->map.start_addr || pc >= w->map.end_addr) {
		if (walk_find_mapping(w, pc)) {
			if (w->is_exact_pc || walk_hijacked(w))
				return 1 + HT_END_NO_MAPPING;
			is_own = false;
		}
		pc = w->pc - !w->is_exact_pc;
	}
	*ret_frame = HT_FRAME(w->map.file_id, pc - w->map.bias);
	if (w->map.flags & HT_MAPPING_JIT) {
		ret_row->cfa = HT_CFA_JIT;
	} else if (w->is_first) {
		/* A probe site keeps the rsp of the function's entry: no table needed. */
		ret_row->cfa = HT_CFA_RSP;
		ret_row->cfa_off = 1;
	} else {
		err = walk_find_row(w, pc - w->map.bias, ret_row);
		if (err)
			return 1 + err;
	}
	if (is_own && w->is_map_known)
		step_remember(hash, *ret_frame, ret_row);
	return 0;
}

/* Note the frame at pc and step to its caller. 0: go on; else 1 + HT_END_*. */
__noinline int walk_step(struct ht_walk *w)
{
	__u64 hash, frame = 0, cfa = 0, ra = 0, bp;
	struct ht_row row = {};
	int err = 0;
	__u32 n;

	if (!w)
		return 1 + HT_END_NO_MAPPING;
	hash = step_hash(w->salt, w->pc - !w->is_exact_pc, w->is_first);
	if (!step_recall(hash, &frame, &row))
		err = walk_look_up(w, hash, &frame, &row);
	if (!frame)
		return err;
	w->is_nested |= row.rbp & w->nest_mask ? NESTED_ON_STACK : 0;
	if (w->is_nested)
		return 1 + HT_END_COMPLETE;
	n = w->stack.frame_cnt;
	if (n >= HT_FRAMES_CAP)
		return 1 + HT_END_TOO_DEEP;
	w->stack.frame[n] = frame;
	w->stack.frame_cnt = n + 1;
	if (err)
		return walk_frame_pointer(w, err - 1);
	switch (row.cfa) {
	case HT_CFA_NONE:
		return walk_frame_pointer(w, HT_END_NO_ROW);
	case HT_CFA_END:
		return 1 + HT_END_COMPLETE;
	case HT_CFA_UNSUPPORTED:
		return 1 + HT_END_UNSUPPORTED;
	case HT_CFA_SIGNAL:
		return walk_signal_frame(w);
	case HT_CFA_JIT:
		return walk_jit_frame(w);
	}
	if (row.cfa == HT_CFA_RSP_WIDE) {
		cfa = w->sp + (__u64)HT_ROW_WIDE_OFF(&row) * 8;
		row.rbp_off = HT_ROW_WIDE_RBP_OFF(&row);
	} else if (walk_cfa(w, &row, w->pc - !w->is_exact_pc, &cfa)) {
		return 1 + HT_END_READ_FAULT;
	}
	if (cfa <= w->sp || (cfa & 7))
		return 1 + HT_END_BAD_CFA;
	if (walk_read_caller(w, &row, cfa, &ra, &bp))
		return 1 + HT_END_READ_FAULT;
	if (!ra) /* the convention of hand-written thread starts without frame information */
		return 1 + HT_END_COMPLETE;
	w->pc = ra;
	w->sp = cfa;
	w->bp = bp;
	w->is_exact_pc = 0;
	w->is_first = 0;
	return 0;
}

/*
 * Step until the walk ends: 1 + HT_END_*. Global, so that the verifier follows its rounds once, and not once
 * for each caller: that was a third of the time to load the programs.
 */
__noinline int walk_steps(struct ht_walk *w)
{
	int end = 0;

	for (int i = 0; i < HT_FRAMES_CAP + 1; i++) {
		end = walk_step(w);
		if (end)
			break;
	}
	return end;
}

/* Hash of the frames and of how the walk ended: equal stacks, equal keys. Never 0. */
__noinline __u64 stack_hash(const struct ht_stack *s)
{
	__u64 h;

	if (!s)
		return 1;
	h = s->frame_cnt ^ ((__u64)s->end << 32);
	for (int i = 0; i < HT_FRAMES_CAP; i++) {
		if (i >= s->frame_cnt)
			break;
		h = (h ^ s->frame[i]) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 32;
	}
	return h ? h : 1;
}

__noinline int stack_equal(const struct ht_stack *a, const struct ht_stack *b)
{
	if (!a || !b)
		return 0;
	if (a->frame_cnt != b->frame_cnt || a->end != b->end)
		return 0;
	for (int i = 0; i < HT_FRAMES_CAP; i++) {
		if (i >= a->frame_cnt)
			break;
		if (a->frame[i] != b->frame[i])
			return 0;
	}
	return 1;
}

/* Id of the stack, 0 when it could not be kept (counted). A stack that is just being taken out is unavailable
 * for some ns: such a sample is counted as one that found the map full. */
__noinline __u64 stack_intern(struct ht_walk *arg)
{
	struct ht_walk *w = arg ? walk_self(arg) : NULL;
	struct ht_stack *known, *s;
	__u64 id;

	if (!w)
		return 0;
	s = &w->stack;
	id = stack_hash(s);
	known = bpf_map_lookup_elem(&stacks, &id);
	if (!known || !reclaim_keep(&known->epoch)) {
		s->epoch = reclaim_epoch;
		s->owner_tgid = w->tgid;
		s->owner_generation = w->generation;
		if (!share_take(w->tgid, w->generation, HT_SHARED_STACKS))
			return 0;
		if (!bpf_map_update_elem(&stacks, &id, s, BPF_NOEXIST)) {
			stat_inc(HT_STAT_STACKS_NEW);
			return id;
		}
		share_give(w->tgid, w->generation, HT_SHARED_STACKS);
		known = bpf_map_lookup_elem(&stacks, &id);
		if (!known || !reclaim_keep(&known->epoch)) {
			stat_inc(HT_STAT_STACKS_FULL);
			return 0;
		}
	}
	if (stack_equal(known, s))
		return id;
	stat_inc(HT_STAT_STACK_COLLISION);
	return 0;
}

static __always_inline void walk_start(struct ht_walk *w, struct pt_regs *ctx,
				       const struct ht_target *t)
{
	w->tgid = t->tgid;
	w->tid = bpf_get_current_pid_tgid();
	w->generation = t->generation;
	w->pc = PT_REGS_IP(ctx);
	w->sp = PT_REGS_SP(ctx);
	w->bp = PT_REGS_FP(ctx);
	w->is_exact_pc = 1;
	w->is_first = 1;
	w->map.start_addr = w->map.end_addr = 0;
	w->map.file_id = 0;
	w->nest_mask = 0;
	w->is_nested = 0;
	w->has_new_jit = 0;
	/* Before any look-up: what is found now must not be remembered under the salt after a change. */
	w->salt = step_salt(w->tgid, w->generation);
	w->stack.frame_cnt = 0;
}

/* Does vaddr of the file belong to an allocator? INNER_*. Global for the verifier's sake, as walk_steps(). */
#define INNER_NO 0
#define INNER_BY_PLACE 1
#define INNER_PROBED 2 /* it is a probed function, which is on the stack */
__noinline int file_is_inner(__u32 file_id, __u64 vaddr)
{
	const struct ht_file *file = bpf_map_lookup_elem(&files, &file_id);

	if (!file)
		return INNER_NO;
	for (__u32 i = 0; i < HT_INNER_CAP; i++) {
		if (i >= file->inner_cnt)
			break;
		if (vaddr >= file->inner[i].start_vaddr && vaddr < file->inner[i].end_vaddr)
			return file->flags & HT_FILE_INNER_IS_PROBED ? INNER_PROBED :
								       INNER_BY_PLACE;
	}
	return INNER_NO;
}

/* Did the walk leave the file with this id? */
static __always_inline bool walk_has_left(const struct ht_walk *w, __u32 file_id)
{
	__u32 last = w->stack.frame_cnt - 1;

	return last < HT_FRAMES_CAP && HT_FRAME_FILE(w->stack.frame[last]) != file_id;
}

/*
 * The caller's place says that the call is a part of another one, and the walk has ended. Is it one? If every call
 * is recorded, the walk finds the other one, on the stack or among those that wait: else there is none. If not,
 * the other one may have jumped on and not be sampled: the call is left out, and user space compares how often it
 * was sampled with how often that was to be expected.
 */
__noinline int walk_is_inner(struct ht_walk *w, int end)
{
	__u32 file_id;
	struct ht_file *file;

	if (!w)
		return 0;
	if (w->is_nested & NESTED_ON_STACK)
		return 1;
	if (!w->keeps_all)
		stat_add(HT_STAT_NESTED_DUE_16,
			 w->threshold == HT_KEEP_ALWAYS ? 1 << 16 : w->threshold >> 16);
	if (w->is_nested) {
		if (!w->keeps_all)
			stat_inc(HT_STAT_NESTED_FOUND);
		return 1;
	}
	file_id = w->inner_file_id;
	if (w->keeps_all && (end == 1 + HT_END_COMPLETE || walk_has_left(w, file_id)))
		return 0;
	file = bpf_map_lookup_elem(&files, &file_id);
	if (file)
		__sync_fetch_and_add(&file->unproven_cnt, 1);
	if (w->keeps_all)
		stat_inc(HT_STAT_NESTED_UNPROVEN);
	return 1;
}

/*
 * Capture the stack from here. is_entry: the probe is at the entry of a call and keeps the rsp of the entry.
 * *ret_id: 0 when there is no stack. false: the call is a part of another one, and the walk ends there.
 * nest_mask: see struct ht_walk.
 */
static __always_inline bool stack_capture(struct ht_walk *w, struct pt_regs *ctx,
					  struct ht_target *t, __u32 nest_mask, bool is_entry,
					  __u64 *ret_id)
{
	__u64 begin_ns = bpf_ktime_get_ns();
	int end;

	walk_start(w, ctx, t);
	if (w->begin_pc) {
		w->pc = w->begin_pc;
		w->sp = w->begin_sp;
	}
	w->is_first = is_entry;
	w->nest_mask = nest_mask;
	end = walk_steps(w);
	if (w->inner_file_id ? walk_is_inner(w, end) : w->is_nested) {
		hit_sampled(t, bpf_ktime_get_ns() - begin_ns);
		return false;
	}
	w->stack.end = end > 0 && end <= HT_END_CNT ? end - 1 : HT_END_TOO_DEEP;
	stat_inc(HT_STAT_END_COMPLETE + w->stack.end);
	stat_add(HT_STAT_FRAMES, w->stack.frame_cnt);
	stat_add(HT_STAT_WALK_NS, bpf_ktime_get_ns() - begin_ns);
	if ((w->stack.end == HT_END_NO_MAPPING || w->has_new_jit) &&
	    begin_ns - t->unmapped_ns > 10000000) {
		t->unmapped_ns = begin_ns;
		event_send(HT_EVENT_UNMAPPED, w->tgid, t->generation, w->tid, w->pc);
	}
	*ret_id = stack_intern(w);
	hit_sampled(t, bpf_ktime_get_ns() - begin_ns);
	return true;
}

#endif
