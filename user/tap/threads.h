/* SPDX-License-Identifier: MIT */
/*
 * threads.h - to stop all threads of a process for a moment, with ptrace, and let them go on as if nothing had been.
 *
 * For a process of its own, which is the tracer and ends soon: only a stopped thread can be let go of, and one that
 * sleeps in the kernel and does not stop in time is let go of when its tracer ends. A system call that is interrupted by the stop is begun again, also those that
 * answer EINTR to a mere stop (epoll_wait and its like); a signal that comes meanwhile is delivered afterwards.
 */
#ifndef HT_TAP_THREADS_H
#define HT_TAP_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#define THREADS_STOP_LIMIT_NS 200000000ULL

struct threads;

/*
 * Stops them. -ESRCH: it has ended; -EPERM: it may not be traced, or is already; -ETIMEDOUT: a thread did not stop in
 * time. After a failure all go on.
 */
int threads_stop(pid_t pid, struct threads **ret);
/* All go on. How long they were stopped. NULL is fine. */
uint64_t threads_resume(struct threads *t);
size_t threads_cnt(const struct threads *t);

/* Is a thread at this address? Then it goes on at the other one. */
void threads_move_pc(struct threads *t, uint64_t from_addr, uint64_t to_addr);

/*
 * One of the threads makes a system call at the instruction at syscall_addr; begin and end save and restore it.
 * -EAGAIN: no thread is where it can; -EPERM: a seccomp filter would look at it, and may not be suspended.
 */
int threads_begin_calls(struct threads *t, uint64_t syscall_addr);
void threads_end_calls(struct threads *t);
/* Its answer, -errno as it is; -ESRCH: the process has ended. Between begin and end. */
int64_t threads_call(struct threads *t, long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		     uint64_t e, uint64_t f);
/* A place below the stack of that thread, for a few bytes. */
uint64_t threads_scratch_addr(const struct threads *t);

#endif
