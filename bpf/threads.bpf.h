/* SPDX-License-Identifier: MIT */
/*
 * threads.bpf.h - what of a process's threads a return probe or a stop would harm. The kernel is asked, and no
 * thread is stopped for the question: whoever stops one may be killed before the answer.
 */
#ifndef HT_THREADS_BPF_H
#define HT_THREADS_BPF_H

#if defined(__TARGET_ARCH_x86)
#define RESTART_SYSCALL_NR 219
#elif defined(__TARGET_ARCH_arm64)
#define RESTART_SYSCALL_NR 128
#endif
#define BITS_PER_LONG 64

/*
 * Does the thread handle its system calls itself (syscall user dispatch, as Wine's do)? A return probe ends in a
 * system call since 6.11, which it would be given, and would crash on.
 */
static __always_inline bool thread_is_dispatching(const struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	if (bpf_core_field_exists(task->thread_info.syscall_work))
		return task->thread_info.syscall_work >>
			       bpf_core_enum_value(enum syscall_work_bit,
						   SYSCALL_WORK_BIT_SYSCALL_USER_DISPATCH) &
		       1;
#endif
	return false;
}

/*
 * A timed call that a stop has interrupted is resumed by restart_syscall(), which a seccomp filter sees. The kernel
 * remembers the calls that all filters of a thread allow whatever their arguments (5.11).
 */
static __always_inline bool thread_may_not_restart(const struct task_struct *task)
{
	const struct seccomp_filter *filter = NULL;
	unsigned long allowed;

	if (!bpf_core_field_exists(task->seccomp.filter) ||
	    !bpf_core_field_exists(filter->cache.allow_native))
		return false;
	filter = BPF_CORE_READ(task, seccomp.filter);
	if (!filter)
		return false;
	allowed = BPF_CORE_READ(filter, cache.allow_native[RESTART_SYSCALL_NR / BITS_PER_LONG]);
	return !(allowed >> RESTART_SYSCALL_NR % BITS_PER_LONG & 1);
}

#endif
