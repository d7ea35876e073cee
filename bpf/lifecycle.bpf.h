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

/*
 * The calls of a thread end with it. A process that is no longer a target may have some as well. A thread that
 * executes becomes the main thread: its calls are stored under old_tid.
 */
static __noinline int calls_end(__u32 tid)
{
	struct ht_calls *calls = bpf_map_lookup_elem(&pending, &tid);

	if (!calls)
		return 0;
	for (__u32 i = 0; i < HT_PENDING_CAP; i++)
		if (calls->call[i].sp) {
			stat_inc(HT_STAT_PENDING_STALE);
			__sync_fetch_and_add(calls_filter_slot(calls->call[i].sp), -1);
		}
	bpf_map_delete_elem(&pending, &tid);
	return 0;
}

static __always_inline void lifecycle_exec(__u32 old_tid)
{
	__u32 tgid, tid = bpf_get_current_pid_tgid();
	struct ht_target *t = target_current(&tgid);

	calls_end(tid);
	if (old_tid != tid)
		calls_end(old_tid);
	if (!t)
		return;
	tags_drop(tgid);
	peak_image_over(tgid, t->generation);
	t->name_cnt = 0;
	t->mm = mm_current();
	__sync_fetch_and_add(&t->generation, 1);
	/* Now it is a process of its own, which begins. */
	if (t->flags & HT_TARGET_BORROWS)
		event_send(HT_EVENT_FORK, t->owner_tgid, 0, tgid, 0);
	__sync_fetch_and_and(&t->flags,
			     ~(HT_TARGET_WAITS_EXEC | HT_TARGET_SAMPLES | HT_TARGET_BORROWS));
	event_send(HT_EVENT_EXEC, tgid, t->generation, hold_is_on(t), 0);
}

/* oom_mm is set, for good, in every process that the OOM killer chose. */
static __always_inline __u32 exit_status(struct task_struct *task)
{
	struct signal_struct *signal = BPF_CORE_READ(task, signal);
	__u32 status = (__u32)BPF_CORE_READ(task, exit_code) & 0xffff;

	if (bpf_core_field_exists(signal->oom_mm) && BPF_CORE_READ(signal, oom_mm))
		status |= HT_EXIT_OOM;
	return status;
}

static __always_inline void lifecycle_exit(struct task_struct *task)
{
	__u32 tgid, tid = bpf_get_current_pid_tgid();
	struct ht_target *t = target_current(&tgid);

	calls_end(tid);
	if (!t)
		return;
	if (BPF_CORE_READ(task, signal, live.counter))
		return;
	peak_image_over(tgid, t->generation);
	if (t->flags & HT_TARGET_BORROWS)
		bpf_map_delete_elem(&targets, &tgid); /* nobody else knows it */
	else
		event_send(HT_EVENT_EXIT, tgid, t->generation, exit_status(task), 0);
}

__u32 child_generations; /* given out to followed children, in steps */

static __always_inline void lifecycle_fork(struct task_struct *child)
{
	__u32 tgid, child_tgid = BPF_CORE_READ(child, tgid);
	struct ht_target *t = target_current(&tgid);
	struct ht_target copy;

	if (!t)
		return;
	if (t->flags & HT_TARGET_BORROWS) {
		t = target_owner(t);
		if (!t)
			return;
	} else {
		t->mm = mm_current();
	}
	if (child_tgid == tgid)
		return;
	tgid = t->tgid;
	if (t->flags & HT_TARGET_FOLLOW) {
		__builtin_memcpy(&copy, t, sizeof(copy));
		copy.flags &= ~HT_TARGET_QUIET; /* nobody would clear it */
		copy.name_cnt = 0;
		copy.generation = HT_GENERATION_CHILDREN +
				  __sync_fetch_and_add(&child_generations, HT_GENERATION_STEP);
		copy.tgid = child_tgid;
		copy.mm = mm_of(child);
		if (copy.mm == t->mm) {
			copy.flags |= HT_TARGET_BORROWS;
			copy.owner_tgid = tgid;
			bpf_map_update_elem(&targets, &child_tgid, &copy, BPF_ANY);
			return;
		}
		/* The parent's mappings are the child's until its first exec. */
		bpf_map_update_elem(&targets, &child_tgid, &copy, BPF_ANY);
		tags_inherit(tgid, child_tgid, copy.generation);
	}
	event_send(HT_EVENT_FORK, tgid, t->generation, child_tgid, 0);
}

#endif
