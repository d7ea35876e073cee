/* SPDX-License-Identifier: MIT */
/*
 * hold.bpf.h - stops a traced process at the moment when its loader has mapped the libraries and has not run
 * any of their code.
 *
 * The guardian traces a program that heaptap started (user/guardian/tracer.c). At each exec the kernel stops it
 * by itself, before the loader begins. The second stop is at the loader's own mark for debuggers: there we send
 * the thread a signal, which the tracer sees first and does not pass on. The signal does nothing when the
 * thread is no longer traced: it is SIGCHLD, which is ignored by default, and which the kernel itself never
 * sends without naming a child. If it is blocked it would arrive later, when nobody waits for it: then it is
 * not sent.
 */
#ifndef HT_HOLD_BPF_H
#define HT_HOLD_BPF_H

#define HT_SIGCHLD 17

/* The cookie is the distance from the probe to the loader's r_debug.r_state (0: not known), whose values are in
 * link.h: the loader calls this place before it maps libraries, too. */
#define HT_RT_CONSISTENT 0

static __always_inline bool hold_is_settled(struct pt_regs *ctx)
{
	__s64 to_state = bpf_get_attach_cookie(ctx);
	__s32 state = HT_RT_CONSISTENT;

	return !to_state ||
	       bpf_probe_read_user(&state, sizeof(state), (void *)(PT_REGS_IP(ctx) + to_state)) ||
	       state == HT_RT_CONSISTENT;
}

/* Is the current thread, of this target, traced for a hold? */
static __always_inline bool hold_is_on(const struct ht_target *t)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	return t->flags & HT_TARGET_HELD && BPF_CORE_READ(task, ptrace);
}

static __always_inline void hold_loaded(struct pt_regs *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct ht_target *t;
	__u32 tgid;

	t = target_current(&tgid);
	if (!t || !hold_is_on(t) ||
	    BPF_CORE_READ(task, blocked.sig[0]) & (1ULL << (HT_SIGCHLD - 1)))
		return;
	if (hold_is_settled(ctx))
		bpf_send_signal_thread(HT_SIGCHLD);
}

#endif
