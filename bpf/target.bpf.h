/* SPDX-License-Identifier: MIT */
/*
 * target.bpf.h - is the current process recorded?
 *
 * A heap is in a memory, not in a process: a child of vfork() or clone(CLONE_VM) has its parent's until it executes a
 * program. So its hits count for the process whose memory it is, the owner (HT_TARGET_BORROWS). Memories are compared as
 * the kernel names them, by the address of struct mm_struct, which is looked up only where two processes are concerned.
 */
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

static __always_inline __u64 mm_of(struct task_struct *task)
{
	return (__u64)BPF_CORE_READ(task, mm);
}

static __always_inline __u64 mm_current(void)
{
	return mm_of((struct task_struct *)bpf_get_current_task());
}

/* Is the current process, which is another one, in the memory of the owner? A process that the owner started is in it if
 * it still shares it with its parent. That tells also when the owner itself has not run here yet. */
static __always_inline bool target_shares(struct ht_target *owner)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 mm = mm_of(task);

	if (!owner->mm && (__u32)BPF_CORE_READ(task, real_parent, tgid) == owner->tgid &&
	    (__u64)BPF_CORE_READ(task, real_parent, mm) == mm)
		owner->mm = mm;
	return mm && owner->mm == mm;
}

/* The owner of the memory that the target has borrowed; NULL: it is not recorded, or has another memory by now. */
static __noinline struct ht_target *target_owner(const struct ht_target *t)
{
	struct ht_target *owner = target_find(t->owner_tgid);

	return owner && target_shares(owner) ? owner : NULL;
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

	if (t && t->flags & HT_TARGET_BORROWS) {
		t = target_owner(t);
		if (t)
			*ret_tgid = t->tgid;
	}
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

/* ... for a hit of a tap that is in the memory of this process. */
static __always_inline struct ht_target *target_of_tap(__u32 owner_tgid)
{
	struct ht_target *t = target_find(owner_tgid);

	if (!t || t->flags & (TARGET_IS_OVER | HT_TARGET_QUIET))
		return NULL;
	if (bpf_get_current_pid_tgid() >> 32 == owner_tgid)
		t->mm = mm_current();
	else if (!target_shares(t))
		return NULL;
	return t;
}

/* ... for a hit that ends a call, or reports something about the process. */
static __always_inline struct ht_target *target_of_event(__u32 *ret_tgid)
{
	return target_unless(TARGET_IS_OVER, ret_tgid);
}

#endif
