/* SPDX-License-Identifier: MIT */
/*
 * lifecycle.bpf.h - exec, exit and fork, in the exact order in which they happen.
 *
 * An exec makes everything that was allocated before it unreachable: the target's generation
 * goes up, so entries of the old image can neither be freed nor mistaken for the new one's, and
 * user space reads them as "what was held at the exec".
 */
#ifndef HT_LIFECYCLE_BPF_H
#define HT_LIFECYCLE_BPF_H

static __always_inline void lifecycle_exec(void)
{
	__u32 tgid, tid = bpf_get_current_pid_tgid();
	struct ht_target *t = target_current(&tgid);

	if (!t)
		return;
	bpf_map_delete_elem(&pending, &tid);
	__sync_fetch_and_add(&t->generation, 1);
	t->flags &= ~HT_TARGET_WAITS_EXEC;
	event_send(HT_EVENT_EXEC, tgid, t->generation, 0, 0);
}

static __always_inline void lifecycle_exit(struct task_struct *task)
{
	__u32 tgid, tid = bpf_get_current_pid_tgid();
	struct ht_target *t = target_current(&tgid);

	if (!t)
		return;
	bpf_map_delete_elem(&pending, &tid);
	if (BPF_CORE_READ(task, signal, live.counter) == 0)
		event_send(HT_EVENT_EXIT, tgid, t->generation, 0, 0);
}

__u32 child_generations; /* given out to followed children, in steps */

static __always_inline void lifecycle_fork(struct task_struct *child)
{
	__u32 tgid, child_tgid = BPF_CORE_READ(child, tgid);
	struct ht_target *t = target_current(&tgid);
	struct ht_target copy;

	if (!t || child_tgid == tgid)
		return;
	if (t->flags & HT_TARGET_FOLLOW) {
		__builtin_memcpy(&copy, t, sizeof(copy));
		copy.generation = HT_GENERATION_CHILDREN +
				  __sync_fetch_and_add(&child_generations, HT_GENERATION_STEP);
		/* The parent's mappings are the child's until its first exec. */
		bpf_map_update_elem(&targets, &child_tgid, &copy, BPF_ANY);
	}
	event_send(HT_EVENT_FORK, tgid, t->generation, child_tgid, 0);
}

#endif
