/* SPDX-License-Identifier: MIT */
/* target.bpf.h - is the current process recorded, and is a call the allocator's own? */
#ifndef HT_TARGET_BPF_H
#define HT_TARGET_BPF_H

static __always_inline struct ht_target *target_current(__u32 *ret_tgid)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	*ret_tgid = tgid;
	return bpf_map_lookup_elem(&targets, &tgid);
}

/* Does code at addr belong to an allocator (so that a call returning there is nested)? */
static __always_inline bool target_is_inner(const struct ht_target *t, __u64 addr)
{
	for (__u32 i = 0; i < HT_INNER_CAP; i++) {
		if (i >= t->inner_cnt)
			break;
		if (addr >= t->inner[i].start_addr && addr < t->inner[i].end_addr)
			return true;
	}
	return false;
}

#endif
