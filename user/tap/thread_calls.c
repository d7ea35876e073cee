/* SPDX-License-Identifier: MIT */
/*
 * thread_calls.c - system calls that a stopped thread makes for heaptap, see threads.h.
 *
 * They are made between the stops of PTRACE_SYSCALL. Single steps and breakpoints would be reported by a SIGTRAP
 * that the kernel forces, which resets an ignored or blocked SIGTRAP to its default for good. For the same reason
 * the signals that a fault makes are not blocked meanwhile: a forced signal that is blocked loses its handler. If
 * one comes instead of the call's result (SIGSYS of a filter or of syscall user dispatch), it is thrown away and
 * the call has failed.
 *
 * A thread that was left with the registers of a call would crash. So those lead it back by itself (thread_frame.c): the
 * tracer may be killed at any moment.
 *
 * After the calls the thread is stopped once more as before: only from a stop at which signals are delivered does
 * the kernel begin an interrupted call again.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/proc_text.h"
#include "tap/threads_priv.h"

#define SYSCALL_STOP (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */
#define RESTART_BLOCK (-516)
#define GRACE_NS \
	50000000ULL /* at the end of the stop: to get back a thread whose call does not return */
#define REQUEST_GET_FILTER 0x420c
#define REQUEST_GET_RSEQ 0x420f
#define REQUEST_GET_DISPATCH 0x4211
#define ARCH_X86_64 0xc000003e

/*
 * Seccomp. A call that a filter does not allow is not made. The tracer could suspend the filters for it
 * (PTRACE_O_SUSPEND_SECCOMP), but they are back if it is killed before the call.
 */

static bool is_filtered(pid_t tid)
{
	return proc_status_number(tid, "Seccomp", 1);
}

/*
 * A tracer that has filters itself may not read those of others. can_tell: EINVAL means that there are none; otherwise it may
 * also mean that the kernel cannot read them, or the strict mode, and the thread's status tells, which takes 30 us.
 */
static bool may_call(pid_t tid, const struct seccomp_data *data, bool can_tell)
{
	struct sock_filter *f = calloc(BPF_MAXINSNS, sizeof(*f));
	bool may = f;
	long cnt;

	for (long i = 0; may; i++) {
		uint32_t action;

		cnt = ptrace(REQUEST_GET_FILTER, tid, (void *)i, f);
		if (cnt < 0) {
			may = errno == ENOENT /* no more */ || (errno == EINVAL && can_tell) ||
			      !is_filtered(tid);
			break;
		}
		action = filter_run(f, (size_t)cnt, data);
		may = action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
	}
	free(f);
	return may;
}

static bool may_call_nr(pid_t tid, int nr)
{
	const struct seccomp_data data = { .nr = nr, .arch = ARCH_X86_64 };

	return may_call(tid, &data, false);
}

/* A kernel that says which pid is the newest can read filters (both are CONFIG_CHECKPOINT_RESTORE); in the strict mode there
 * are no calls that last. */
bool threads_may_restart(const struct threads *t, pid_t tid)
{
	const struct seccomp_data data = { .nr = SYS_restart_syscall, .arch = ARCH_X86_64 };

	return may_call(tid, &data, t->last_pid >= 0);
}

/* Whatever else is allowed, it can be undone. */
static bool may_go_back(pid_t tid)
{
	return may_call_nr(tid, SYS_rt_sigreturn) && may_call_nr(tid, SYS_munmap) &&
	       may_call_nr(tid, SYS_close);
}

static bool may_call_with(pid_t tid, const struct user_regs_struct *regs)
{
	const struct seccomp_data data = {
		.nr = (int)regs->rax,
		.arch = ARCH_X86_64,
		.instruction_pointer = regs->rip + 2, /* behind `syscall` */
		.args = { regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8, regs->r9 },
	};

	return may_call(tid, &data, false);
}

/*
 * The thread.
 */

struct rseq_where { /* PTRACE_GET_RSEQ_CONFIGURATION */
	uint64_t addr;
	uint32_t bytes, signature, flags, reserved;
};

/* A restartable sequence ends when it is interrupted in the middle: make no call there. */
static bool is_in_rseq(const struct stopped *s, const struct threads_calls *how)
{
	struct rseq_where where;
	long got = ptrace(REQUEST_GET_RSEQ, s->tid, (void *)sizeof(where), &where);
	uint64_t section;

	if (got < (long)sizeof(where) || !where.addr)
		return false;
	return how->read(how->ctx, where.addr + 8, &section) || section;
}

struct dispatch { /* PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG */
	uint64_t mode, selector, offset, len;
};

static bool is_dispatching(const struct stopped *s)
{
	struct dispatch d;

	return !ptrace(REQUEST_GET_DISPATCH, s->tid, (void *)sizeof(d), &d) && d.mode;
}

/* Choose the calling thread: one that executes the program (those of the kernel's vhost have no rip). For threads in a
 * timed call the kernel keeps more than registers: prefer another one. */
static struct stopped *choose(struct threads *t, const struct threads_calls *how, int *ret_err)
{
	struct stopped *s, *second = NULL;

	*ret_err = -EAGAIN;
	vec_each(&t->list, s) {
		if (s->is_gone || s->is_pinned || s->signal || s->pid != t->pid || !s->regs.rip)
			continue;
		if (now_ns() > t->end_ns)
			break;
		if (is_in_rseq(s, how))
			continue;
		if (is_dispatching(s)) {
			*ret_err = -EOPNOTSUPP;
			continue;
		}
		if ((int64_t)s->regs.orig_rax < 0 || (int64_t)s->regs.rax != RESTART_BLOCK)
			return s;
		second = s;
	}
	return second;
}

/* Where the caller goes on when its tracer is killed between two calls. orig_rax: at the entry of a call the kernel would
 * make the thread's own once more. */
static struct user_regs_struct idle_regs(const struct threads *t)
{
	struct user_regs_struct regs = t->caller->regs;

	regs.orig_rax = ~0ULL;
	if (t->frame.addr) {
		regs.rip = t->calls.sigreturn_addr;
		regs.rsp = t->frame.addr + sizeof(uint64_t); /* as if its first word was popped */
	}
	return regs;
}

/* Without one the calls are made all the same. */
static int make_way_back(struct threads *t)
{
	const struct threads_calls *how = &t->calls;
	struct stopped *s = t->caller;
	struct user_regs_struct regs;

	t->frame.addr = 0;
	if (!how->sigreturn_addr ||
	    thread_frame_make(s->tid, &s->regs, t->saved_mask, how->sigreturn_addr, &t->frame) ||
	    how->exchange(how->ctx, t->frame.addr, t->frame.bytes, t->frame.byte_cnt)) {
		t->frame.addr = 0;
		return 0;
	}
	regs = idle_regs(t);
	return ptrace(PTRACE_SETREGS, s->tid, NULL, &regs) ? -ESRCH : 0;
}

/* It has its own registers again. */
static void remove_way_back(struct threads *t)
{
	const struct threads_calls *how = &t->calls;

	if (t->frame.addr)
		how->exchange(how->ctx, t->frame.addr, t->frame.bytes, t->frame.byte_cnt);
	t->frame.addr = 0;
}

int threads_begin_calls(struct threads *t, const struct threads_calls *how)
{
	uint64_t blocked = ~0ULL;
	static const int faults[] = { SIGSYS, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };
	int err;
	struct stopped *s = choose(t, how, &err);

	if (!s)
		return err;
	if (!may_go_back(s->tid))
		return -EPERM;
	if (ptrace(PTRACE_GETSIGMASK, s->tid, (void *)sizeof(t->saved_mask), &t->saved_mask))
		return -errno;
	t->caller = s;
	t->calls = *how;
	err = make_way_back(t);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		blocked &= ~(1ULL << (faults[i] - 1));
	if (!err && ptrace(PTRACE_SETSIGMASK, s->tid, (void *)sizeof(blocked), &blocked))
		err = -errno;
	if (err)
		threads_end_calls(t);
	return err;
}

/*
 * Note a stop of the caller that was not asked for. A fault's signal may have been sent by somebody: it is kept for
 * later. SIGSTOP, which is never blocked, is returned, to be passed on: then the kernel knows that the process is
 * stopped, and a SIGCONT that comes now ends that. -EFAULT: the kernel has made this signal because of our call.
 */
static int note_stop(struct threads *t, int status)
{
	struct stopped *s = t->caller;
	siginfo_t info;

	if (!WIFSTOPPED(status) || threads_has_executed(s, status)) {
		s->is_gone = true;
		return -ESRCH;
	}
	if (status >> 16 || WSTOPSIG(status) == SYSCALL_STOP)
		return 0;
	if (WSTOPSIG(status) == SIGSTOP)
		return SIGSTOP;
	if (!ptrace(PTRACE_GETSIGINFO, s->tid, NULL, &info) && info.si_code > 0)
		return -EFAULT;
	t->kept_mask |= 1ULL << (WSTOPSIG(status) - 1);
	return 0;
}

/* At the stop from which it goes on no signal can be given to the thread: they are sent once more. */
static void send_kept(struct threads *t)
{
	for (int signal = 1; t->kept_mask; signal++, t->kept_mask >>= 1)
		if (t->kept_mask & 1)
			syscall(SYS_tgkill, t->caller->pid, t->caller->tid, signal);
}

/* Run to the next stop of that kind. */
static int run_to(struct threads *t, int request, int event, int signal)
{
	struct stopped *s = t->caller;
	int status, err;

	for (;;) {
		if (ptrace(request, s->tid, NULL, (void *)(intptr_t)t->passed))
			return -ESRCH;
		t->passed = 0;
		err = threads_wait(s->tid, t->end_ns - GRACE_NS, &status);
		t->is_running = err == -ETIMEDOUT;
		s->is_gone |= err == -ESRCH;
		if (err)
			return err;
		err = note_stop(t, status);
		if (err < 0)
			return err;
		t->passed = err;
		if (status >> 16 == event && (!signal || WSTOPSIG(status) == signal))
			return 0;
	}
}

int64_t threads_call(struct threads *t, long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		     uint64_t e, uint64_t f)
{
	struct stopped *s = t->caller;
	struct user_regs_struct regs = s->regs;
	int err;

	if (t->is_running)
		return -ETIMEDOUT;
	regs.rip = t->calls.syscall_addr;
	if (t->frame.addr)
		regs.rsp = t->frame.addr; /* the ret after the call leads to its first word */
	regs.orig_rax = ~0ULL; /* no call is begun again */
	regs.rax = (unsigned long long)nr;
	regs.rdi = a;
	regs.rsi = b;
	regs.rdx = c;
	regs.r10 = d;
	regs.r8 = e;
	regs.r9 = f;
	if (!may_call_with(s->tid, &regs))
		return -EOPNOTSUPP;
	if (ptrace(PTRACE_SETREGS, s->tid, NULL, &regs))
		return -ESRCH;
	err = run_to(t, PTRACE_SYSCALL, 0, SYSCALL_STOP);
	if (!err)
		err = run_to(t, PTRACE_SYSCALL, 0, SYSCALL_STOP);
	if (err)
		return err;
	return ptrace(PTRACE_GETREGS, s->tid, NULL, &regs) ? -ESRCH : (int64_t)regs.rax;
}

/* Bring a caller that is stopped somehow back to where it was, and to the kind of stop it was in. */
static int restore_caller(struct threads *t, uint64_t end_ns)
{
	struct stopped *s = t->caller;
	const struct user_regs_struct idle = idle_regs(t);
	int status, err;

	for (;;) {
		if (ptrace(PTRACE_SETREGS, s->tid, NULL, &idle) ||
		    ptrace(PTRACE_INTERRUPT, s->tid, NULL, NULL) ||
		    ptrace(PTRACE_CONT, s->tid, NULL, (void *)(intptr_t)t->passed))
			return -ESRCH;
		t->passed = 0;
		err = threads_wait(s->tid, end_ns, &status);
		if (err)
			return err;
		t->passed = note_stop(t, status) == SIGSTOP ? SIGSTOP : 0;
		if (s->is_gone)
			return -ESRCH;
		if (status >> 16 == PTRACE_EVENT_STOP)
			break;
	}
	ptrace(PTRACE_SETSIGMASK, s->tid, (void *)sizeof(t->saved_mask), &t->saved_mask);
	ptrace(PTRACE_SETREGS, s->tid, NULL, &s->regs);
	send_kept(t);
	t->caller = NULL;
	return 0;
}

/* A call has not returned: interrupt it, and wait for its stop. */
static int stop_caller(struct threads *t, uint64_t end_ns)
{
	struct stopped *s = t->caller;
	int status, err;

	if (ptrace(PTRACE_INTERRUPT, s->tid, NULL, NULL))
		return -ESRCH;
	err = threads_wait(s->tid, end_ns, &status);
	if (err)
		return err;
	t->is_running = false;
	t->passed = note_stop(t, status) == SIGSTOP ? SIGSTOP : 0;
	return s->is_gone ? -ESRCH : 0;
}

void threads_end_calls(struct threads *t)
{
	const uint64_t least_ns = now_ns() + GRACE_NS / 5;
	const uint64_t end_ns = t->end_ns > least_ns ? t->end_ns : least_ns;
	int err = 0;

	if (!t->caller || t->caller->is_gone) {
		t->caller = NULL;
		return;
	}
	if (t->is_running)
		err = stop_caller(t, end_ns);
	if (!err)
		err = restore_caller(t, end_ns);
	if (!err)
		remove_way_back(t);
	if (err == -ESRCH) {
		t->caller->is_gone = true;
		t->caller = NULL;
	}
	t->is_running = t->caller;
}

void threads_await_caller(struct threads *t)
{
	struct stopped *s = t->caller;
	int err = stop_caller(t, UINT64_MAX);

	if (!err)
		err = restore_caller(t, UINT64_MAX);
	t->caller = NULL;
	if (!err)
		ptrace(PTRACE_DETACH, s->tid, NULL, NULL);
}

uint64_t threads_scratch_addr(const struct threads *t)
{
	return (t->caller->regs.rsp - 512) & ~15ULL;
}
