/* SPDX-License-Identifier: MIT */
/* threads_priv.h - internal parts of threads.c: a stopped thread; its system calls (thread_calls.c, thread_frame.c). */
#ifndef HT_TAP_THREADS_PRIV_H
#define HT_TAP_THREADS_PRIV_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/hmap.h"
#include "base/vec.h"
#include "tap/threads.h"

struct stopped {
	pid_t pid, tid;
	bool is_stopped, is_pinned, is_gone, is_detached;
	int signal; /* the signal that it was about to get */
	struct user_regs_struct regs; /* of a pinned thread only rip and rsp */
	bool is_changed;
	bool is_restarted; /* its call is begun again */
	bool has_told; /* which processes it has made; it makes no more */
};

/* The frame of a signal, to be written at addr. */
struct thread_frame {
	uint64_t addr; /* 0: none */
	size_t byte_cnt;
	uint8_t bytes[THREADS_FRAME_CAP];
};

struct threads {
	pid_t pid, live_tid;
	VEC(pid_t) sharers; /* other processes with the same memory */
	uint64_t text_pages; /* of the target: process_text_pages() */
	struct hmap compared; /* pids of processes that are known to be that, or not */
	VEC(struct stopped) list;
	struct hmap by_tid; /* index in list */
	uint64_t begin_ns, end_ns;
	uint64_t stopped_ns; /* when the first thread was interrupted; 0: none */
	int64_t last_pid; /* when sharers were looked for: the newest pid; -1: the kernel does not say */
	/* The thread that makes calls; NULL: none, or its registers have been restored. */
	struct stopped *caller;
	struct threads_calls calls;
	struct thread_frame frame; /* its way back; its bytes are those that were there */
	uint64_t saved_mask;
	uint64_t kept_mask; /* signals that it gets afterwards */
	int passed; /* the signal that it gets when it goes on from this stop; 0: none */
	bool is_running; /* the caller is in a call that has not returned */
};

/* Of all that are seized. When a program is executed, its thread stops before it runs, and has a tid that may have been
 * another one's. */
#define THREADS_OPTIONS (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC)

/* If that is such a stop, let the new program go on, which has nothing of the old one. */
bool threads_has_executed(struct stopped *s, int status);

/* Wait for a thread's next stop. -ESRCH: it has ended; -ETIMEDOUT. */
int threads_wait(pid_t tid, uint64_t end_ns, int *ret_status);

/* thread_calls.c */

/* Do the thread's seccomp filters, if it has any, allow restart_syscall()? It is in a call that is begun again so. */
bool threads_may_restart(const struct threads *t, pid_t tid);
/* Wait without a deadline for a caller whose call did not return in time, restore it and let it go on. */
void threads_await_caller(struct threads *t);

/*
 * thread_frame.c: a frame that brings the stopped thread back to these registers and that signal mask, once it calls
 * rt_sigreturn with its stack pointer 8 bytes above the frame. -ENOTSUP: its vector registers cannot be saved.
 */
int thread_frame_make(pid_t tid, const struct user_regs_struct *regs, uint64_t signal_mask,
		      uint64_t sigreturn_addr, struct thread_frame *ret);

/*
 * filter.c: what a seccomp filter says of a system call: classic BPF, run as the kernel runs it.
 * Source: Documentation/userspace-api/seccomp_filter.rst and networking/filter.rst of the kernel.
 */

/* Returns SECCOMP_RET_* without its data. A filter that the kernel would not take kills. */
uint32_t filter_run(const struct sock_filter *code, size_t cnt, const struct seccomp_data *data);

#endif
