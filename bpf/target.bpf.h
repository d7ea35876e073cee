/* SPDX-License-Identifier: MIT */
/* target.bpf.h - is the current process recorded? */
#ifndef HT_TARGET_BPF_H
#define HT_TARGET_BPF_H

static __always_inline struct ht_target *target_current(__u32 *ret_tgid)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	*ret_tgid = tgid;
	return bpf_map_lookup_elem(&targets, &tgid);
}

/* The same for a hit: NULL as well while the process has not executed its program yet. */
static __always_inline struct ht_target *target_of_hit(__u32 *ret_tgid)
{
	struct ht_target *t = target_current(ret_tgid);

	return t && (t->flags & HT_TARGET_WAITS_EXEC) ? NULL : t;
}

#endif
