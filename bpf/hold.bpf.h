/* SPDX-License-Identifier: MIT */
/*
 * hold.bpf.h - a stop for a traced process at the moment when its loader has mapped the libraries and has
 * not run any of their code.
 *
 * The guardian traces a program that heaptap started (user/guardian/tracer.c). The kernel stops it at each
 * exec by itself, when the loader has not begun. For the second stop, at the loader's own mark for
 * debuggers, the thread is sent a signal, which a tracer is shown first and does not pass on. It is
 * one that does nothing when nobody traces it any more: SIGCHLD, which is ignored by default, and
 * which the kernel itself never sends without saying of which child. Blocked it would come later, when
 * nobody waits for it: then it is not sent.
 */
#ifndef HT_HOLD_BPF_H
#define HT_HOLD_BPF_H

#define HT_SIGCHLD 17

static __always_inline void hold_loaded(struct task_struct *task)
{
	struct ht_target *t;
	__u32 tgid;

	t = target_current(&tgid);
	if (!t || !(t->flags & HT_TARGET_HELD) || !BPF_CORE_READ(task, ptrace) ||
	    BPF_CORE_READ(task, blocked.sig[0]) & (1ULL << (HT_SIGCHLD - 1)))
		return;
	bpf_send_signal_thread(HT_SIGCHLD);
}

#endif
