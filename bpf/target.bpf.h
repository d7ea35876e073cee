/* SPDX-License-Identifier: MIT */
/* target.bpf.h - is the current process recorded? */
#ifndef HT_TARGET_BPF_H
#define HT_TARGET_BPF_H

/*
 * When one process is recorded and its children are not, the process is known when the object is loaded: then
 * its settings are a variable, and a hit needs no hash look-up to find them.
 */
const volatile __u32 ht_only_tgid;
struct ht_target only_target;
/*
 * ... and no hits of other processes come here. The links of a process ensure that where there are sessions
 * (the kernel compares thread groups since 6.10; a perf event's link compares address spaces, which a child of
 * vfork() shares). Then a hit need not check its process.
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

/* The same; also NULL when the target has a flag of the mask. */
static __always_inline struct ht_target *target_unless(__u32 flags, __u32 *ret_tgid)
{
	struct ht_target *t = target_current(ret_tgid);

	return t && (t->flags & flags) ? NULL : t;
}

/* ... for a hit that begins a call: NULL also when the target is over or quiet. */
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

/* ... for a hit that ends a call, or reports something about the process. */
static __always_inline struct ht_target *target_of_event(__u32 *ret_tgid)
{
	return target_unless(TARGET_IS_OVER, ret_tgid);
}

#endif
