/* SPDX-License-Identifier: MIT */
/*
 * threads.h - stops all threads of a process for a moment, with ptrace, and lets them go on as if nothing had
 * happened.
 *
 * To be called in a process of its own, which is the tracer and ends soon: only a stopped thread can be
 * released, and a thread that sleeps in the kernel and does not stop in time is released when its tracer ends.
 * A system call that the stop interrupts is begun again, even one that returns EINTR after a mere stop
 * (epoll_wait and its like); a signal that comes meanwhile is delivered afterwards.
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
 * Stop all threads. -ESRCH: the process has ended; -EPERM: it may not be traced, or is already; -ETIMEDOUT: a
 * thread did not stop in time. After a failure all threads go on.
 */
int threads_stop(pid_t pid, struct threads **ret);
/* Let all threads go on. Returns how long they were stopped, in ns. NULL is fine. */
uint64_t threads_resume(struct threads *t);
size_t threads_cnt(const struct threads *t);

/* If a thread is at from_addr, let it go on at to_addr. */
void threads_move_pc(struct threads *t, uint64_t from_addr, uint64_t to_addr);

/*
 * Let one of the threads make system calls with the instruction at syscall_addr; begin and end save and restore
 * the thread. -EAGAIN: no thread is at a place where it can; -EPERM: a seccomp filter would see the call, and
 * may not be suspended.
 */
int threads_begin_calls(struct threads *t, uint64_t syscall_addr);
void threads_end_calls(struct threads *t);
/* Return the call's result, -errno as it is; -ESRCH: the process has ended. Between begin and end. */
int64_t threads_call(struct threads *t, long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		     uint64_t e, uint64_t f);
/* A place below the stack of that thread, for a few bytes. */
uint64_t threads_scratch_addr(const struct threads *t);

#endif
