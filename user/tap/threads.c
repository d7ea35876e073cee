/* SPDX-License-Identifier: MIT */
/*
 * threads.c - see threads.h.
 *
 * Seize (which stops nothing), interrupt, wait; then once more for threads that were born meanwhile, until
 * there is no new one: only a running thread can make another.
 *
 * Deadlines. A timer's signal ends every wait: waitpid() returns with EINTR, and so does PTRACE_SEIZE, which
 * may wait for a lock that an execve() of the process holds (cred_guard_mutex). That execve() in turn waits
 * until the tracer has reaped the threads that it killed; the handler reaps them, so that it goes on. Only
 * PTRACE_SEIZE begins its wait again after a handler: past the deadline the handler jumps out of it.
 *
 * No call may return EINTR that would not have done so without us, and none may miss a signal that ends it. A
 * call that the stop has made return EINTR gets ERESTARTNOHAND instead: the kernel begins it again, or makes it
 * EINTR when a handler runs, which is what these calls do. close() is not begun again, because the descriptor is
 * closed by then. A call that the kernel resumes by restart_syscall() (nanosleep, timed futex, poll) is begun
 * anew under its own number where a seccomp filter does not allow restart_syscall(): it then lasts for its whole
 * time once more, as every other call with a relative limit does (epoll_wait, semtimedop).
 *
 * An ignored signal wakes no thread, unless the thread that it is for is traced: then the kernel sends it to any
 * thread that is not stopped, whose call ends; if that thread is not traced, nobody can help it. The process's
 * signals go to the first thread, so it is seized after all others have stopped, and released first. (One case
 * is left: SIGCHLD is for the thread that made the child. While that thread is traced and another is not, it may
 * end a call of the other: so threads that were in such calls are released last.) And we wait for a thread that
 * was interrupted, because its call has ended.
 */
#include "tap/threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"
#include "proc/proc_text.h"
#include "proc/process.h"
#include "tap/threads_priv.h"

/*
 * Other processes with the memory of the target: children of vfork(), CLONE_VM.
 *
 * Each process of the machine is asked, whoever its user is. kcmp() waits for one that executes another program, and no
 * timer ends that (process.c). So only those are compared whose text is as long as the target's.
 */

#define SHARERS_CAP 256
#ifndef KCMP_VM
#define KCMP_VM 1
#endif

static long compare_memory(pid_t pid, pid_t other)
{
	return syscall(SYS_kcmp, pid, other, KCMP_VM, 0UL, 0UL);
}

/* -EPERM: the service that heaptap runs in may not compare. A kernel without kcmp() finds nobody. */
static int check_compare(void)
{
	return compare_memory(getpid(), getpid()) < 0 && errno == EPERM ? -EPERM : 0;
}

/* A first thread that has ended before the others has no memory. */
static bool has_memory_of(const struct threads *t, pid_t pid)
{
	uint64_t text_pages = process_text_pages(pid, pid);
	pid_t tid = pid;

	if (!text_pages) {
		tid = threads_live_tid(pid);
		text_pages = tid && tid != pid ? process_text_pages(pid, tid) : 0;
	}
	return text_pages && text_pages == t->text_pages && compare_memory(t->live_tid, tid) == 0;
}

static int add_sharer(struct threads *t, pid_t pid)
{
	const uint64_t key = (uint64_t)pid;

	if (pid <= 0 || pid == getpid() || pid == t->pid || hmap_get(&t->compared, &key))
		return 0;
	if (hmap_put(&t->compared, &key, 1))
		return -ENOMEM;
	if (!has_memory_of(t, pid))
		return 0;
	return t->sharers.cnt < SHARERS_CAP ? vec_push(&t->sharers, pid) : -E2BIG;
}

/* Of the pid namespace that this process is in, to which those of its children belong as well. -1: not known. */
static int64_t read_last_pid(void)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_RDONLY | O_CLOEXEC);
	char text[32];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	return atoll(text);
}

/* Find all, before anything is stopped. -EPERM: processes may not be compared; -E2BIG: there are too many. */
static int sharers_find(struct threads *t)
{
	struct dirent *e;
	DIR *d = opendir("/proc");
	int err = check_compare();

	if (!d)
		return -errno;
	t->last_pid = read_last_pid();
	t->text_pages = process_text_pages(t->pid, t->live_tid);
	while (!err && (e = readdir(d)))
		err = add_sharer(t, atoi(e->d_name));
	closedir(d);
	return err;
}

/* Children that a thread has made since then. */
static int sharers_find_children(struct threads *t, pid_t pid, pid_t tid)
{
	FILE *f = proc_fopen(pid, "task/%d/children", tid);
	int child, err = 0;

	while (f && !err && fscanf(f, "%d", &child) == 1)
		err = add_sharer(t, child);
	if (f)
		fclose(f);
	return err;
}

#define RESTART_NO_INTR (-513)
#define RESTART_NO_HANDLER (-514)
#define RESTART_BLOCK (-516)
#define TICK_US 1000
/* A thread that sleeps where no signal wakes it is pinned after this time. */
#define PIN_NS 8000000ULL
#define FIRST_NS 50000000ULL /* at the end of the stop: the others wait for a late first thread */
/* Waits for a thread that was too late for the stop: asleep in the kernel, where nothing is interrupted, or
 * without a processor. */
#define LATE_ASLEEP_NS 20000000ULL
#define LATE_NS 2000000000ULL
#define FLAG_IO_WORKER 0x10 /* PF_IO_WORKER of the kernel, since 5.12 */

/*
 * The timer.
 */

static sigjmp_buf seize_escape;
static struct threads *volatile seizing; /* waits in PTRACE_SEIZE */

/* Reap the threads that have ended; who waits for one of them later learns of it by ECHILD. One by one: asked for
 * any ended thread, the kernel also reports, and forgets, that another one has stopped. */
static void reap_ended(const struct threads *t)
{
	const struct stopped *s;
	siginfo_t info;

	vec_each(&t->list, s) {
		info.si_pid = 0;
		if (!waitid(P_PID, (id_t)s->tid, &info,
			    WEXITED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD) &&
		    info.si_pid && info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
			waitid(P_PID, (id_t)s->tid, &info,
			       WEXITED | WNOHANG | __WALL | __WNOTHREAD);
	}
}

static void tick(int signal)
{
	struct threads *t = seizing;
	int saved = errno;

	(void)signal;
	if (!t)
		return;
	reap_ended(t);
	errno = saved;
	if (now_ns() > t->end_ns) {
		seizing = NULL;
		siglongjmp(seize_escape, 1);
	}
}

int threads_start_timer(void)
{
	const struct sigaction action = { .sa_handler = tick };
	const struct itimerval every = { { .tv_usec = TICK_US }, { .tv_usec = TICK_US } };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	if (sigaction(SIGALRM, &action, NULL) || sigprocmask(SIG_UNBLOCK, &set, NULL) ||
	    setitimer(ITIMER_REAL, &every, NULL))
		return -errno;
	return 0;
}

/*
 * /proc.
 */

static struct stopped *find(struct threads *t, pid_t tid)
{
	const uint64_t key = (uint64_t)tid, *at = hmap_get(&t->by_tid, &key);

	return at ? &t->list.data[*at] : NULL;
}

/* Not its stat: that one waits for a process which executes another program (has_memory_of()). */
char threads_state(pid_t pid, pid_t tid)
{
	FILE *f = proc_fopen(pid, "task/%d/status", tid);
	char line[128], state = 'X';

	while (f && state == 'X' && fgets(line, sizeof(line), f))
		sscanf(line, "State: %c", &state);
	if (f)
		fclose(f);
	return state;
}

/* A thread that the kernel has made for io_uring: it never executes the program, and what it waits for must not be
 * interrupted, as the program would see EINTR. No first thread is one, and only that one executes a program. */
static bool is_of_kernel(pid_t pid, pid_t tid)
{
	char text[512], *at;
	unsigned int flags = 0;

	if (tid == pid || !proc_read_start(pid, text, sizeof(text), "task/%d/stat", tid))
		return false;
	at = strrchr(text, ')'); /* field 2; flags are field 9 */
	return at && sscanf(at, ") %*c %*d %*d %*d %*d %*d %u", &flags) > 0 &&
	       (flags & FLAG_IO_WORKER);
}

/* A visit that was too late for some threads still has these. */
pid_t threads_tracer(pid_t pid, char *name, size_t bytes)
{
	DIR *d = proc_opendir(pid, "task");
	pid_t tracer = 0;
	struct dirent *e;

	while (d && tracer <= 0 && (e = readdir(d)))
		if (atoi(e->d_name) > 0)
			tracer = (pid_t)proc_status_number(atoi(e->d_name), "TracerPid", 0);
	if (d)
		closedir(d);
	if (tracer > 0 && proc_read_start(tracer, name, bytes, "comm"))
		name[strcspn(name, "\n")] = '\0';
	return tracer;
}

/* A first thread that has ended before the others stays in the list. */
static bool is_zombie(pid_t pid, pid_t tid)
{
	char state = threads_state(pid, tid);

	return state == 'Z' || state == 'X';
}

pid_t threads_live_tid(pid_t pid)
{
	struct dirent *e;
	pid_t found = 0;
	DIR *d;

	if (!is_zombie(pid, pid))
		return pid;
	d = proc_opendir(pid, "task");
	while (d && !found && (e = readdir(d)))
		if (atoi(e->d_name) > 0 && !is_zombie(pid, atoi(e->d_name)))
			found = atoi(e->d_name);
	if (d)
		closedir(d);
	return found;
}

/* Where a thread that sleeps in the kernel left its program. */
static int read_place(const struct stopped *s, struct thread_place *ret)
{
	char text[256], *sp, *pc;
	size_t n = proc_read_start(s->pid, text, sizeof(text), "task/%d/syscall", s->tid);

	if (!n)
		return -ESRCH;
	while (n && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	pc = strrchr(text, ' '); /* the last two words; "running" has no words */
	if (!pc)
		return -EAGAIN;
	*pc++ = '\0';
	sp = strrchr(text, ' ');
	if (!sp)
		return -EAGAIN;
	ret->sp = strtoull(sp + 1, NULL, 16);
	ret->pc = strtoull(pc, NULL, 16);
	return 0;
}

/*
 * Stop.
 */

static int ptrace_seize(struct threads *t, pid_t tid)
{
	int rc;

	if (sigsetjmp(seize_escape, 1))
		return -ETIMEDOUT;
	seizing = t;
	rc = ptrace(PTRACE_SEIZE, tid, NULL, (void *)THREADS_OPTIONS) ? -errno : 0;
	seizing = NULL;
	return rc;
}

/* 1: the thread is new, so there may be more; 0: it is known, or ends. */
static int seize(struct threads *t, pid_t pid, pid_t tid)
{
	struct stopped s = { .pid = pid, .tid = tid };
	const uint64_t key = (uint64_t)tid;
	int err;

	if (tid <= 0 || find(t, tid) || is_of_kernel(pid, tid))
		return 0;
	if (vec_reserve(&t->list, t->list.cnt + 1) || hmap_put(&t->by_tid, &key, t->list.cnt))
		return -ENOMEM;
	err = ptrace_seize(t, tid);
	if (err)
		hmap_del(&t->by_tid, &key);
	if (err == -ESRCH && threads_state(pid, tid) == 'X')
		return 1; /* it has ended while they were listed: others may have been left out */
	if (err)
		return err == -ESRCH || (err != -ETIMEDOUT && is_zombie(pid, tid)) ? 0 : err;
	t->list.data[t->list.cnt++] = s;
	return 1;
}

static int seize_new_of(struct threads *t, pid_t pid, bool with_first)
{
	DIR *d = proc_opendir(pid, "task");
	int found = 0, rc = 0;
	struct dirent *e;

	if (!d)
		return errno != ENOENT ? -errno : pid == t->pid ? -ESRCH : 0;
	while (rc >= 0 && (e = readdir(d))) {
		pid_t tid = atoi(e->d_name);

		if (now_ns() > t->end_ns)
			rc = -ETIMEDOUT;
		else
			rc = tid == pid ? 0 : seize(t, pid, tid);
		found |= rc > 0;
	}
	closedir(d);
	if (rc >= 0 && with_first)
		rc = seize(t, pid, pid);
	found |= rc > 0;
	return rc < 0 ? rc : found;
}

/* 1: some threads are new. */
static int seize_new(struct threads *t, bool with_first)
{
	int found = seize_new_of(t, t->pid, with_first), rc = found;

	for (size_t i = 0; rc >= 0 && with_first && i < t->sharers.cnt; i++) {
		rc = seize_new_of(t, t->sharers.data[i], true);
		found |= rc > 0;
	}
	return rc < 0 ? rc : found;
}

static void interrupt_all(struct threads *t)
{
	struct stopped *s;

	if (!t->stopped_ns)
		t->stopped_ns = now_ns();
	vec_each(&t->list, s)
		if (!s->is_stopped && !s->is_gone && ptrace(PTRACE_INTERRUPT, s->tid, NULL, NULL))
			s->is_gone = errno == ESRCH && kill(s->tid, 0) && errno == ESRCH;
}

/* Done at once, because the tracer may be killed. */
static void restart_call(const struct threads *t, struct stopped *s)
{
	const int64_t result = (int64_t)s->regs.rax;

	if ((int64_t)s->regs.orig_rax < 0)
		return;
	if (result == -EINTR && s->regs.orig_rax != SYS_close)
		s->regs.rax = (unsigned long long)RESTART_NO_HANDLER;
	else if (result == RESTART_BLOCK && !threads_may_restart(t, s->tid))
		s->regs.rax = (unsigned long long)RESTART_NO_HANDLER;
	else
		return;
	s->is_restarted = true;
	ptrace(PTRACE_SETREGS, s->tid, NULL, &s->regs);
}

bool threads_has_executed(struct stopped *s, int status)
{
	if (!WIFSTOPPED(status) || status >> 16 != PTRACE_EVENT_EXEC)
		return false;
	ptrace(PTRACE_DETACH, s->tid, NULL, NULL);
	return s->is_gone = true;
}

static void note_status(const struct threads *t, struct stopped *s, int status)
{
	if (!WIFSTOPPED(status)) {
		s->is_gone = true;
		return;
	}
	if (threads_has_executed(s, status))
		return;
	s->is_stopped = true;
	s->is_pinned = false;
	if (status >> 16 == 0)
		s->signal = WSTOPSIG(status);
	if (ptrace(PTRACE_GETREGS, s->tid, NULL, &s->regs))
		s->is_gone = true;
	else
		restart_call(t, s);
}

int threads_wait(pid_t tid, uint64_t end_ns, int *ret_status)
{
	for (;;) {
		pid_t got = waitpid(tid, ret_status, __WALL | __WNOTHREAD);

		if (got == tid)
			return 0;
		if (got < 0 && errno != EINTR)
			return -ESRCH;
		if (now_ns() > end_ns)
			return -ETIMEDOUT;
	}
}

static int await(const struct threads *t, struct stopped *s, uint64_t end_ns)
{
	int status, err;

	if (s->is_stopped || s->is_gone)
		return 0;
	err = threads_wait(s->tid, end_ns, &status);
	if (!err)
		note_status(t, s, status);
	s->is_gone |= err == -ESRCH;
	return err == -ETIMEDOUT ? err : 0;
}

/* It does not stop: is it pinned? Where one waits that executes another program is not asked: the answer would wait,
 * too. */
static int pin(struct stopped *s)
{
	struct thread_place place = { 0 };

	if (threads_state(s->pid, s->tid) != 'D' || !process_text_pages(s->pid, s->tid) ||
	    read_place(s, &place))
		return -EAGAIN;
	s->regs.rip = place.pc;
	s->regs.rsp = place.sp;
	s->is_pinned = true;
	return 0;
}

static int await_or_pin(const struct threads *t, struct stopped *s)
{
	int err = 0;

	while (!s->is_pinned) {
		uint64_t end_ns = now_ns() + PIN_NS;

		err = await(t, s, end_ns < t->end_ns ? end_ns : t->end_ns);
		if (err != -ETIMEDOUT || !pin(s))
			return 0;
		if (now_ns() > t->end_ns)
			break;
	}
	return err;
}

/* Processes that the threads have made before they stopped. */
static int find_new_sharers(struct threads *t)
{
	int err = 0;

	for (size_t i = 0; i < t->list.cnt && !err; i++) {
		struct stopped *s = &t->list.data[i];

		if (!s->is_gone && !s->has_told)
			err = sharers_find_children(t, s->pid, s->tid);
		s->has_told = s->is_stopped;
	}
	return err;
}

static int stop_new(struct threads *t, bool with_first)
{
	int found = seize_new(t, with_first), err = 0;
	struct stopped *s;

	if (found <= 0)
		return found;
	if (now_ns() > t->end_ns)
		return -ETIMEDOUT;
	interrupt_all(t);
	for (size_t i = 0; i < t->list.cnt && !err; i++) {
		s = &t->list.data[i];
		if (s->is_stopped || s->is_gone || s->is_pinned)
			continue;
		err = await_or_pin(t, s);
	}
	if (!err && (t->last_pid < 0 || read_last_pid() != t->last_pid))
		err = find_new_sharers(t);
	return err ? err : 1;
}

static int stop_all(struct threads *t)
{
	int rc = sharers_find(t);

	t->begin_ns = now_ns();
	t->end_ns = t->begin_ns + THREADS_STOP_LIMIT_NS - FIRST_NS;
	if (!rc)
		do
			rc = stop_new(t, false);
		while (rc > 0);
	if (!rc)
		do
			rc = stop_new(t, true);
		while (rc > 0);
	t->end_ns += FIRST_NS;
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
	*ret = t;
	hmap_init(&t->by_tid, sizeof(uint64_t));
	hmap_init(&t->compared, sizeof(uint64_t));
	t->pid = pid;
	t->begin_ns = now_ns();
	t->live_tid = threads_live_tid(pid);
	err = t->live_tid ? stop_all(t) : -ESRCH;
	vec_each(&t->list, s)
		alive_cnt += !s->is_gone;
	if (!err && !alive_cnt) /* all gone: the process has ended, or executes another program */
		err = threads_live_tid(pid) ? -EAGAIN : -ESRCH;
	return err;
}

/*
 * Resume.
 */

static void detach(struct stopped *s)
{
	if (s->is_gone || s->is_detached)
		return;
	if (s->is_changed)
		ptrace(PTRACE_SETREGS, s->tid, NULL, &s->regs);
	ptrace(PTRACE_DETACH, s->tid, NULL, (void *)(intptr_t)s->signal);
	s->is_detached = true;
}

static void detach_stopped(struct threads *t, bool is_restarted)
{
	struct stopped *s;

	vec_each(&t->list, s)
		if (s->is_stopped && s->is_restarted == is_restarted && s->tid != t->pid &&
		    s != t->caller)
			detach(s);
}

static void detach_late(const struct threads *t, struct stopped *s, uint64_t end_ns)
{
	while (await(t, s, now_ns() + LATE_ASLEEP_NS))
		if (threads_state(s->pid, s->tid) == 'D' || now_ns() > end_ns)
			return;
	detach(s);
}

uint64_t threads_resume(struct threads *t)
{
	struct stopped *first = find(t, t->pid);

	if (first && first != t->caller && !first->is_pinned && !await(t, first, t->end_ns))
		detach(first);
	detach_stopped(t, false);
	detach_stopped(t, true);
	return t->stopped_ns ? now_ns() - t->stopped_ns : 0;
}

void threads_free(struct threads *t)
{
	struct stopped *s;
	uint64_t end_ns;

	if (!t)
		return;
	if (t->caller) {
		setitimer(ITIMER_REAL, &(const struct itimerval){ 0 },
			  NULL); /* it may last for days */
		threads_await_caller(t);
		threads_start_timer();
	}
	end_ns = now_ns() + LATE_NS; /* for all of them together */
	vec_each(&t->list, s)
		if (!s->is_stopped && !s->is_gone)
			detach_late(t, s, end_ns);
	vec_release(&t->list);
	hmap_release(&t->by_tid);
	hmap_release(&t->compared);
	vec_release(&t->sharers);
	free(t);
}

/*
 * What they were doing.
 */

size_t threads_cnt(const struct threads *t)
{
	return t->list.cnt;
}

uint64_t threads_end_ns(const struct threads *t)
{
	return t->end_ns;
}

size_t threads_places(const struct threads *t, struct thread_place *ret, size_t cap)
{
	const struct stopped *s;
	size_t cnt = 0;

	vec_each(&t->list, s)
		if (!s->is_gone && cnt < cap)
			ret[cnt++] = (struct thread_place){
				.pc = s->regs.rip,
				.sp = s->regs.rsp,
				.tp = s->is_pinned ? THREAD_TP_UNKNOWN : s->regs.fs_base,
			};
	return cnt;
}

bool threads_has_pinned_at(const struct threads *t, uint64_t addr)
{
	const struct stopped *s;

	vec_each(&t->list, s)
		if (s->is_pinned && s->regs.rip == addr)
			return true;
	return false;
}

void threads_move_pc(struct threads *t, uint64_t from_addr, uint64_t to_addr)
{
	struct stopped *s;

	vec_each(&t->list, s) {
		if (s->is_gone || s->is_pinned || s->regs.rip != from_addr)
			continue;
		s->regs.rip = to_addr;
		s->is_changed = true;
	}
}
