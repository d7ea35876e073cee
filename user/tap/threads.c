/* SPDX-License-Identifier: MIT */
/*
 * threads.c - see threads.h.
 *
 * Seize (which stops nothing), interrupt, wait; then once more for threads that were born meanwhile, until
 * there is no new one: only a running thread can make another.
 *
 * No call may return EINTR that would not have done so without us. A call that the stop interrupts is begun
 * again. But an ignored signal wakes no thread, unless the thread that it is for is traced: then the kernel
 * sends it to any thread that is not stopped, whose call ends; if that thread is not traced, nobody can help
 * it. The process's signals go to the first thread, so it is seized after all others have stopped, and
 * released first. (One case is left: SIGCHLD is for the thread that made the child. While that thread is
 * traced and another is not, it may end a call of the other: so threads that were in such calls are released
 * last.) And we wait for a thread that was interrupted, because its call has ended.
 *
 * Our system calls are made between the stops of PTRACE_SYSCALL. Single steps and breakpoints would be
 * reported by a SIGTRAP that the kernel forces, which resets an ignored or blocked SIGTRAP to its default
 * for good. After the calls the thread is stopped once more as before: only from a stop at which signals
 * are delivered does the kernel begin an interrupted call again.
 */
#include "tap/threads.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"

#define SYSCALL_STOP (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */
#define RESTART_NO_INTR (-513)
#define RESTART_BLOCK (-516)
#define NAP_NS 20000
#define FIRST_NS 200000000ULL /* how long the others stay stopped for a late first thread */
/* Waits for a thread that was too late for the stop: asleep in the kernel, where nothing is interrupted, or
 * without a processor. */
#define LATE_ASLEEP_NS 20000000ULL
#define LATE_NS 2000000000ULL
#ifndef PTRACE_O_SUSPEND_SECCOMP
#define PTRACE_O_SUSPEND_SECCOMP (1 << 21)
#endif
#define REQUEST_GET_RSEQ 0x420f

struct rseq_where { /* PTRACE_GET_RSEQ_CONFIGURATION */
	uint64_t addr;
	uint32_t bytes, signature, flags, reserved;
};

struct stopped {
	pid_t tid;
	bool is_stopped, is_gone;
	int signal; /* the signal that it was about to get */
	struct user_regs_struct regs;
	bool is_changed;
	bool is_restarted; /* its call is begun again */
};

struct threads {
	pid_t pid;
	uint64_t ignored; /* ignored signals, bit 0 is signal 1 */
	VEC(struct stopped) list;
	uint64_t begin_ns;
	/* The thread that makes calls. */
	struct stopped *caller;
	uint64_t syscall_addr, saved_mask;
	bool is_suspended; /* its seccomp filters */
};

static struct stopped *find(struct threads *t, pid_t tid)
{
	struct stopped *s;

	vec_each(&t->list, s)
		if (s->tid == tid)
			return s;
	return NULL;
}

/* State in the thread's stat; 'X': gone. */
static char state_of(pid_t pid, pid_t tid)
{
	char path[64], text[512], *at;
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return 'X';
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	at = strrchr(text, ')');
	return at && at[1] == ' ' && at[2] ? at[2] : 'X';
}

/* A first thread that has ended before the others stays in the list. */
static bool is_zombie(pid_t pid, pid_t tid)
{
	char state = state_of(pid, tid);

	return state == 'Z' || state == 'X';
}

static uint64_t signal_bit(int signal)
{
	return 1ULL << (signal - 1);
}

/* Read the ignored signals. If that fails, take those that every process ignores. */
static void read_ignored(struct threads *t)
{
	const uint64_t by_default = signal_bit(SIGCHLD) | signal_bit(SIGCONT) | signal_bit(SIGURG) |
				    signal_bit(SIGWINCH);
	unsigned long long ignored = 0, caught = 0;
	char path[48], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", t->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "SigIgn: %llx", &ignored) != 1)
			(void)sscanf(line, "SigCgt: %llx", &caught);
	}
	if (f)
		fclose(f);
	t->ignored = ignored | (by_default & ~caught);
}

/* 1: the thread is new; 0: it is known, or has ended. */
static int seize(struct threads *t, pid_t tid)
{
	struct stopped s = { .tid = tid };
	int err;

	if (tid <= 0 || find(t, tid))
		return 0;
	if (vec_reserve(&t->list, t->list.cnt + 1))
		return -ENOMEM;
	if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)PTRACE_O_TRACESYSGOOD)) {
		err = -errno;
		return err == -ESRCH || is_zombie(t->pid, tid) ? 0 : err;
	}
	t->list.data[t->list.cnt++] = s;
	return 1;
}

/* 1: some threads are new. */
static int seize_new(struct threads *t, bool with_first)
{
	int found = 0, rc = 0;
	char path[48];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", t->pid);
	d = opendir(path);
	if (!d)
		return errno == ENOENT ? -ESRCH : -errno;
	while (rc >= 0 && (e = readdir(d))) {
		pid_t tid = atoi(e->d_name);

		rc = tid == t->pid ? 0 : seize(t, tid);
		found |= rc > 0;
	}
	closedir(d);
	if (rc >= 0 && with_first)
		rc = seize(t, t->pid);
	found |= rc > 0;
	return rc < 0 ? rc : found;
}

static void interrupt_all(struct threads *t)
{
	struct stopped *s;

	vec_each(&t->list, s)
		if (!s->is_stopped && !s->is_gone && ptrace(PTRACE_INTERRUPT, s->tid, NULL, NULL))
			s->is_gone = errno == ESRCH && kill(s->tid, 0) && errno == ESRCH;
}

/*
 * A call that a mere stop ends with EINTR would report a signal that did not happen, so it is begun again. Not
 * close(), which has closed by then. Done at once, because the tracer may be killed.
 */
static void restart_call(struct stopped *s)
{
	if ((int64_t)s->regs.orig_rax < 0 || (int64_t)s->regs.rax != -EINTR ||
	    s->regs.orig_rax == SYS_close)
		return;
	s->regs.rax = (unsigned long long)RESTART_NO_INTR;
	s->is_restarted = true;
	ptrace(PTRACE_SETREGS, s->tid, NULL, &s->regs);
}

static void note_status(const struct threads *t, struct stopped *s, int status)
{
	if (!WIFSTOPPED(status)) {
		s->is_gone = true;
		return;
	}
	s->is_stopped = true;
	if (status >> 16 == 0)
		s->signal = WSTOPSIG(status);
	if (ptrace(PTRACE_GETREGS, s->tid, NULL, &s->regs))
		s->is_gone = true;
	else if (!s->signal || (t->ignored & signal_bit(s->signal)))
		restart_call(s);
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
}

static int await(const struct threads *t, struct stopped *s, uint64_t end_ns)
{
	int status;

	while (!s->is_stopped && !s->is_gone) {
		pid_t got = waitpid(s->tid, &status, __WALL | __WNOTHREAD | WNOHANG);

		if (got == s->tid)
			note_status(t, s, status);
		else if (got < 0 && errno == ECHILD)
			s->is_gone = true;
		else if (now_ns() > end_ns)
			return -ETIMEDOUT;
		else
			nap();
	}
	return 0;
}

static int stop_new(struct threads *t, bool with_first, uint64_t end_ns)
{
	int found = seize_new(t, with_first), err = 0;
	struct stopped *s;

	if (found <= 0)
		return found;
	if (!t->begin_ns)
		t->begin_ns = now_ns();
	interrupt_all(t);
	vec_each(&t->list, s)
		if (!err)
			err = await(t, s, end_ns);
	return err ? err : 1;
}

static int stop_all(struct threads *t)
{
	uint64_t end_ns = now_ns() + THREADS_STOP_LIMIT_NS;
	int rc;

	do
		rc = stop_new(t, false, end_ns);
	while (rc > 0);
	if (!rc)
		do
			rc = stop_new(t, true, end_ns);
		while (rc > 0);
	return rc;
}

int threads_stop(pid_t pid, struct threads **ret)
{
	struct threads *t = calloc(1, sizeof(*t));
	struct stopped *s;
	size_t alive_cnt = 0;
	int err;

	if (!t)
		return -ENOMEM;
	t->pid = pid;
	read_ignored(t);
	err = stop_all(t);
	vec_each(&t->list, s)
		alive_cnt += !s->is_gone;
	if (!err && !alive_cnt)
		err = -ESRCH;
	if (err)
		threads_resume(t);
	else
		*ret = t;
	return err;
}

static void detach(struct stopped *s)
{
	if (s->is_gone)
		return;
	if (s->is_changed)
		ptrace(PTRACE_SETREGS, s->tid, NULL, &s->regs);
	ptrace(PTRACE_DETACH, s->tid, NULL, (void *)(intptr_t)s->signal);
}

static void detach_stopped(struct threads *t, bool is_restarted)
{
	struct stopped *s;

	vec_each(&t->list, s)
		if (s->is_stopped && s->is_restarted == is_restarted && s->tid != t->pid)
			detach(s);
}

static void detach_late(struct threads *t, struct stopped *s, uint64_t end_ns)
{
	while (await(t, s, now_ns() + LATE_ASLEEP_NS))
		if (state_of(t->pid, s->tid) == 'D' || now_ns() > end_ns)
			return;
	detach(s);
}

uint64_t threads_resume(struct threads *t)
{
	struct stopped *s, *first;
	uint64_t stopped_ns, end_ns;

	if (!t)
		return 0;
	first = find(t, t->pid);
	if (first && !await(t, first, now_ns() + FIRST_NS))
		detach(first);
	detach_stopped(t, false);
	detach_stopped(t, true);
	stopped_ns = t->begin_ns ? now_ns() - t->begin_ns : 0;
	end_ns = now_ns() + LATE_NS; /* for all of them together */
	vec_each(&t->list, s)
		if (!s->is_stopped)
			detach_late(t, s, end_ns);
	vec_release(&t->list);
	free(t);
	return stopped_ns;
}

size_t threads_cnt(const struct threads *t)
{
	return t->list.cnt;
}

void threads_move_pc(struct threads *t, uint64_t from_addr, uint64_t to_addr)
{
	struct stopped *s;

	vec_each(&t->list, s) {
		if (s->is_gone || s->regs.rip != from_addr)
			continue;
		s->regs.rip = to_addr;
		s->is_changed = true;
	}
}

/*
 * System calls.
 */

/* A restartable sequence ends when it is interrupted in the middle: make no call there. */
static bool is_in_rseq(const struct stopped *s)
{
	struct rseq_where where;
	long got = ptrace(REQUEST_GET_RSEQ, s->tid, (void *)sizeof(where), &where);
	long cs;

	if (got < (long)sizeof(where) || !where.addr)
		return false;
	errno = 0;
	cs = ptrace(PTRACE_PEEKDATA, s->tid, (void *)(where.addr + 8), NULL);
	return errno || cs;
}

static bool is_filtered(pid_t tid)
{
	char path[48], line[128];
	bool is_filtered = true;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "Seccomp:", 8))
			is_filtered = atoi(line + 8) != 0;
	if (f)
		fclose(f);
	return is_filtered;
}

/* Choose the calling thread. For threads in a timed call the kernel keeps more than registers: prefer another
 * one. */
static struct stopped *choose(struct threads *t)
{
	struct stopped *s, *second = NULL;

	vec_each(&t->list, s) {
		if (s->is_gone || s->signal || is_in_rseq(s))
			continue;
		if ((int64_t)s->regs.orig_rax < 0 || (int64_t)s->regs.rax != RESTART_BLOCK)
			return s;
		second = s;
	}
	return second;
}

int threads_begin_calls(struct threads *t, uint64_t syscall_addr)
{
	const uint64_t all = ~0ULL;
	struct stopped *s = choose(t);

	if (!s)
		return -EAGAIN;
	if (is_filtered(s->tid)) {
		if (ptrace(PTRACE_SETOPTIONS, s->tid, NULL,
			   (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_SUSPEND_SECCOMP)))
			return -EPERM;
		t->is_suspended = true;
	}
	if (ptrace(PTRACE_GETSIGMASK, s->tid, (void *)sizeof(t->saved_mask), &t->saved_mask) ||
	    ptrace(PTRACE_SETSIGMASK, s->tid, (void *)sizeof(all), &all))
		return -errno;
	t->caller = s;
	t->syscall_addr = syscall_addr;
	return 0;
}

/* Run to the next stop of that kind. */
static int run_to(struct stopped *s, int request, int event, int signal)
{
	int status;

	for (;;) {
		if (ptrace(request, s->tid, NULL, NULL) ||
		    waitpid(s->tid, &status, __WALL | __WNOTHREAD) != s->tid)
			return -ESRCH;
		if (!WIFSTOPPED(status)) {
			s->is_gone = true;
			return -ESRCH;
		}
		if (status >> 16 == event && (!signal || WSTOPSIG(status) == signal))
			return 0;
		/* SIGSTOP and SIGKILL are never blocked: a stop is kept for later. */
		if (status >> 16 == 0 && WSTOPSIG(status) == SIGSTOP)
			s->signal = SIGSTOP;
	}
}

void threads_end_calls(struct threads *t)
{
	struct stopped *s = t->caller;

	if (!s || s->is_gone)
		return;
	/* Restore the registers of the first stop, and the kind of the stop. */
	ptrace(PTRACE_SETREGS, s->tid, NULL, &s->regs);
	ptrace(PTRACE_INTERRUPT, s->tid, NULL, NULL);
	if (!run_to(s, PTRACE_CONT, PTRACE_EVENT_STOP, 0)) {
		ptrace(PTRACE_SETREGS, s->tid, NULL, &s->regs);
		ptrace(PTRACE_SETSIGMASK, s->tid, (void *)sizeof(t->saved_mask), &t->saved_mask);
	}
	if (t->is_suspended)
		ptrace(PTRACE_SETOPTIONS, s->tid, NULL, (void *)PTRACE_O_TRACESYSGOOD);
	t->caller = NULL;
}

int64_t threads_call(struct threads *t, long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		     uint64_t e, uint64_t f)
{
	struct stopped *s = t->caller;
	struct user_regs_struct regs = s->regs;
	int err;

	regs.rip = t->syscall_addr;
	regs.orig_rax = ~0ULL; /* no call is begun again */
	regs.rax = (unsigned long long)nr;
	regs.rdi = a;
	regs.rsi = b;
	regs.rdx = c;
	regs.r10 = d;
	regs.r8 = e;
	regs.r9 = f;
	if (ptrace(PTRACE_SETREGS, s->tid, NULL, &regs))
		return -ESRCH;
	err = run_to(s, PTRACE_SYSCALL, 0, SYSCALL_STOP);
	if (!err)
		err = run_to(s, PTRACE_SYSCALL, 0, SYSCALL_STOP);
	if (err)
		return err;
	return ptrace(PTRACE_GETREGS, s->tid, NULL, &regs) ? -ESRCH : (int64_t)regs.rax;
}

uint64_t threads_scratch_addr(const struct threads *t)
{
	return (t->caller->regs.rsp - 512) & ~15ULL;
}
