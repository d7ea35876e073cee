/* SPDX-License-Identifier: MIT */
/*
 * threads.h - stops all threads of a process for a moment, with ptrace, and lets them go on as if nothing had
 * happened.
 *
 * To be called in a process of its own, the tracer, which has no other children and ends soon. It never waits
 * beyond the deadline of the stop, whatever the threads do: a timer ends each wait. Processes that share the
 * memory (children of vfork(), CLONE_VM) are stopped as well.
 *
 * A thread that does not stop because it sleeps where no signal wakes it (in vfork(), in a frozen cgroup, in a
 * read that does not end) is *pinned*: its stop is due before its next instruction, so it cannot run either. The
 * kernel releases it when the tracer ends.
 *
 * A system call that the stop interrupts is begun again, unless a handler runs; a signal that comes meanwhile is
 * delivered afterwards.
 */
#ifndef HT_TAP_THREADS_H
#define HT_TAP_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define THREADS_STOP_LIMIT_NS 200000000ULL

struct threads;

/* Where a stopped thread is. */
struct thread_place {
	uint64_t pc, sp;
	uint64_t tp; /* thread pointer; THREAD_TP_UNKNOWN for a pinned thread */
};
#define THREAD_TP_UNKNOWN UINT64_MAX

/* Once, before the first stop in this process: start the timer. */
int threads_start_timer(void);

/* State in the thread's stat; 'X': gone. */
char threads_state(pid_t pid, pid_t tid);
/* A thread of the process that lives: the process's own entries in /proc are empty once its first thread has ended. 0:
 * there is none. */
pid_t threads_live_tid(pid_t pid);
/* The process that traces it, and its name; 0: none. */
pid_t threads_tracer(pid_t pid, char *name, size_t bytes);

/*
 * Stop all threads. -ESRCH: the process has ended; -EPERM: it may not be traced, or is already; -ETIMEDOUT: a
 * thread neither stopped in time nor is pinned; -EAGAIN: it executes another program. After a failure, too, they are to be
 * resumed, and freed: *ret is NULL only without memory.
 */
int threads_stop(pid_t pid, struct threads **ret);
/* Let all stopped threads go on, but for one that is held by a call which has not returned. Returns how long it is
 * since the first was interrupted, in ns. */
uint64_t threads_resume(struct threads *t);
/* After that: wait for threads that did not stop in time, and free. NULL is fine. */
void threads_free(struct threads *t);
size_t threads_cnt(const struct threads *t);
/* The deadline of this stop. */
uint64_t threads_end_ns(const struct threads *t);

/* Fill `ret` with the places of at most cap threads; returns how many. */
size_t threads_places(const struct threads *t, struct thread_place *ret, size_t cap);
/* Is a pinned thread at this address? It cannot be moved. */
bool threads_has_pinned_at(const struct threads *t, uint64_t addr);
/* If a thread is at from_addr, let it go on at to_addr. */
void threads_move_pc(struct threads *t, uint64_t from_addr, uint64_t to_addr);

/* How one of the threads makes calls, and where its memory is reached: each function returns 0 or -errno. */
struct threads_calls {
	uint64_t syscall_addr; /* a system call instruction */
	/* If a ret follows that instruction: a function that calls rt_sigreturn. Then a thread whose tracer is killed goes on
	 * as if nothing had happened. 0: none, and that thread is left with the registers of the call. */
	uint64_t sigreturn_addr;
	int (*read)(void *ctx, uint64_t addr, uint64_t *ret); /* 8 bytes */
	int (*exchange)(void *ctx, uint64_t addr, void *bytes,
			size_t cnt); /* at most THREADS_FRAME_CAP */
	void *ctx;
};
#define THREADS_FRAME_CAP 4096

/*
 * Let one of the threads make system calls; begin and end save and restore the thread. -EAGAIN: no thread is at a place
 * where it can; -EPERM: a seccomp filter does not allow rt_sigreturn, munmap or close; -EOPNOTSUPP: it dispatches its system
 * calls itself.
 */
int threads_begin_calls(struct threads *t, const struct threads_calls *how);
void threads_end_calls(struct threads *t);
/* Return the call's result, -errno as it is; -ESRCH: the process has ended; -ETIMEDOUT: it has not returned;
 * -EFAULT: a signal came instead of the result; -EOPNOTSUPP: a seccomp filter does not allow the call, which is not made.
 * Between begin and end. */
int64_t threads_call(struct threads *t, long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		     uint64_t e, uint64_t f);
/* A place below the stack of that thread, for a few bytes. */
uint64_t threads_scratch_addr(const struct threads *t);

#endif
