/* SPDX-License-Identifier: MIT */
/*
 * way.bpf.h - which of two probes at one site counts.
 *
 * The probes of a file can be attached in several ways (user/track/plan.c), and move from one to
 * another while the program runs. In a move the new ones are in place before the old ones go, so
 * that no free is missed; a free that is seen twice is found once. An allocation must be drawn for
 * once, and must not be missed either. Between "the old count" and "the new count" is a time in
 * which both do: whichever handler of a hit comes first takes it, and the other, which follows in
 * the same trap, finds that it did. (A switch at one moment would not do: the kernel calls the
 * newer handler first, so a hit in between would find first the new and then the old not to count.)
 *
 * A call ends with the return probe of the way that its entry was seen by: see call_return().
 */
#ifndef HT_WAY_BPF_H
#define HT_WAY_BPF_H

static __always_inline struct ht_calls *calls_get(__u32 tid)
{
	struct ht_calls *calls = bpf_map_lookup_elem(&pending, &tid), *empty;
	__u32 zero = 0;

	if (calls)
		return calls;
	empty = bpf_map_lookup_elem(&empty_calls, &zero);
	if (!empty)
		return NULL;
	bpf_map_update_elem(&pending, &tid, empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(&pending, &tid);
}

/* Index: id of a file. Bit n: probes attached in way n count; 0: there is only one way. */
__u8 ht_ways[HT_FILES_CAP];
/* Of how many files there may be another than one: while of none, all probes count. */
__u32 ht_ways_cnt;

static __always_inline bool ways_differ(void)
{
	return *(volatile __u32 *)&ht_ways_cnt != 0;
}

/* Has the other way's probe taken this very hit? */
static __always_inline bool way_is_second(struct pt_regs *ctx, __u32 way)
{
	__u64 sp = PT_REGS_SP(ctx);
	struct ht_calls *calls;

	/* Read here: clang would put one load behind the branches, from an offset that it chooses in
	 * them, and the verifier allows only constant offsets into the context. */
	asm volatile("" : "+r"(sp));
	calls = calls_get(bpf_get_current_pid_tgid());
	if (!calls)
		return false;
	if (calls->seen_sp == sp && calls->seen_way != way) {
		calls->seen_sp = 0;
		return true;
	}
	calls->seen_sp = sp;
	calls->seen_way = way;
	return false;
}

static __always_inline bool way_counts(struct pt_regs *ctx, __u64 cookie)
{
	__u32 way = HT_COOKIE_WAY(cookie);
	__u8 ways = *(volatile __u8 *)&ht_ways[HT_COOKIE_FILE(cookie)];

	if (!ways)
		return true;
	if (!(ways & 1U << way))
		return false;
	return !(ways & (ways - 1)) || !way_is_second(ctx, way);
}

#endif
