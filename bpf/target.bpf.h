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
/*
 * ... and nobody else's hits come here, as links of a process see to it where there are sessions (the
 * kernel compares thread groups since 6.10; a perf event's compares address spaces, which a child of
 * vfork() shares): then no hit need ask whose it is.
 */
const volatile bool ht_only_hits;

static __always_inline struct ht_target *target_find(__u32 tgid)
{
	if (ht_only_tgid)
		return tgid == ht_only_tgid ? &only_target : NULL;
	return bpf_map_lookup_elem(&targets, &tgid);
}

static __always_inline struct ht_target *target_current(__u32 *ret_tgid)
{
	*ret_tgid = bpf_get_current_pid_tgid() >> 32;
	return target_find(*ret_tgid);
}

#define TARGET_IS_OVER (HT_TARGET_WAITS_EXEC | HT_TARGET_OFF)

/* The same for a hit: NULL as well when a flag of the mask says so. */
static __always_inline struct ht_target *target_unless(__u32 flags, __u32 *ret_tgid)
{
	struct ht_target *t = target_current(ret_tgid);

	return t && (t->flags & flags) ? NULL : t;
}

/* ... that begins a call, where none of these flags is set either. */
static __always_inline struct ht_target *target_of_hit_unless(__u32 flags, __u32 *ret_tgid)
{
	flags |= TARGET_IS_OVER | HT_TARGET_QUIET;
	if (ht_only_hits) {
		*ret_tgid = ht_only_tgid;
		return only_target.flags & flags ? NULL : &only_target;
	}
	return target_unless(flags, ret_tgid);
}

static __always_inline struct ht_target *target_of_hit(__u32 *ret_tgid)
{
	return target_of_hit_unless(0, ret_tgid);
}

/* ... that ends one, or tells something of the process. */
static __always_inline struct ht_target *target_of_event(__u32 *ret_tgid)
{
	return target_unless(TARGET_IS_OVER, ret_tgid);
}

#endif
