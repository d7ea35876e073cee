/* SPDX-License-Identifier: MIT */
/*
 * sharing.bpf.h - decides which of two probes at one site counts.
 *
 * The probes of a file can be attached with several sharings (user/track/plan.c), and move from one to another
 * while the program runs. In a move the new probes are attached before the old ones are detached, so that no
 * free is missed; a free that is seen twice is found once. An allocation must be drawn for once, and must not
 * be missed either. Between "the old probes count" and "the new probes count" there is a time in which both do.
 * Then the first handler of a hit takes it, and the other one, which follows in the same trap, finds that it is
 * taken. (A switch at one moment would not do: the kernel calls the newer handler first, so a hit in between
 * would find first that the new probe does not count, and then that the old one does not.)
 *
 * A call ends with the return probe of the sharing whose probe saw its entry: see call_return().
 */
#ifndef HT_SHARING_BPF_H
#define HT_SHARING_BPF_H

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

/* Index: file id. Bit n: probes of sharing n (HT_SHARING_*) count; 0: all, there is only one sharing. */
__u8 ht_sharings[HT_FILES_CAP];
/* Number of files that may have a value other than 0: while it is 0, all probes count. */
__u32 ht_sharings_cnt;

static __always_inline bool sharings_differ(void)
{
	return *(volatile __u32 *)&ht_sharings_cnt != 0;
}

/* Has the probe of the other sharing taken this very hit? */
static __always_inline bool sharing_is_second(struct pt_regs *ctx, __u32 sharing)
{
	__u64 sp = PT_REGS_SP(ctx);
	struct ht_calls *calls;

	/* Read here: otherwise clang would put one load behind the branches, at an offset that they choose, and
	 * the verifier allows only constant offsets into the context. */
	asm volatile("" : "+r"(sp));
	calls = calls_get(bpf_get_current_pid_tgid());
	if (!calls)
		return false;
	if (calls->seen_sp == sp && calls->seen_sharing != sharing) {
		calls->seen_sp = 0;
		return true;
	}
	calls->seen_sp = sp;
	calls->seen_sharing = sharing;
	return false;
}

static __always_inline bool sharing_counts(struct pt_regs *ctx, __u64 cookie)
{
	__u32 sharing = HT_COOKIE_SHARING(cookie);
	__u8 sharings = *(volatile __u8 *)&ht_sharings[HT_COOKIE_FILE(cookie)];

	if (!sharings)
		return true;
	if (!(sharings & 1U << sharing))
		return false;
	return !(sharings & (sharings - 1)) || !sharing_is_second(ctx, sharing);
}

#endif
