/* SPDX-License-Identifier: MIT */
/* target.bpf.h - is the current process recorded? */
#ifndef HT_TARGET_BPF_H
#define HT_TARGET_BPF_H

/*
 * When one process is recorded and its children are not, it is known when the object is loaded:
 * then its settings are a variable, and a hit needs no hash look-up to find them.
 */
const volatile __u32 ht_only_tgid;
struct ht_target only_target;

static __always_inline struct ht_target *target_current(__u32 *ret_tgid)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	*ret_tgid = tgid;
	if (ht_only_tgid)
		return tgid == ht_only_tgid ? &only_target : NULL;
	return bpf_map_lookup_elem(&targets, &tgid);
}

/* The same for a hit: NULL as well while nothing of the process is to be recorded. */
static __always_inline struct ht_target *target_of_hit(__u32 *ret_tgid)
{
	struct ht_target *t = target_current(ret_tgid);

	return t && (t->flags & (HT_TARGET_WAITS_EXEC | HT_TARGET_OFF)) ? NULL : t;
}

#endif
