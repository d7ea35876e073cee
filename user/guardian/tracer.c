/* SPDX-License-Identifier: MIT */
/*
 * tracer.c - holds programs at an exec, until main has put its probes into them.
 *
 * How can a process be made to wait before it runs the first instruction of a new program?
 * - SIGSTOP from BPF in the exec's tracepoint: its parent sees a stopped child. sudo, su, unshare and
 *   job-control shells take that for Ctrl-Z and stop, too, for good.
 * - ptrace: only the tracer sees the stop. But it ends when the tracer does.
 * So we use ptrace, attached with PTRACE_SEIZE (which stops nothing), with exec events; for a family also
 * with events of new threads and children, which are then traced from their birth. Programs can notice:
 * - TracerPid in /proc/PID/status; a debugger or strace cannot attach to them meanwhile;
 * - a program that traces its own children (gdb, strace) could not do so, so main lets go of such programs;
 * - each signal, thread and child takes some 10 us longer;
 * - setuid programs get their rights as ever, because the tracer is root (CAP_SYS_PTRACE).
 * Parents wait for stopped and ended children as ever, and Ctrl-Z, fg and bg work: a stop for job control
 * is left in place (PTRACE_LISTEN). This needs a tracer in another process than the parent, so main cannot
 * be it. It is in the guardian, because that is quick to answer and protected from being killed.
 *
 * A hold ends at HOLD_LIMIT_NS, whatever main does. When main is gone the thread ends, and the kernel lets
 * everybody go on; the same when the guardian itself is killed.
 */
#include "guardian/guardian_priv.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/vec.h"
#include "proc/proc_text.h"

#define CHILD_OPTIONS (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE)

#define RETRY_NS (10 * NS_PER_MS) /* when main has not read the earlier news */
#define STOPS_CAP 64 /* in a storm of signals main's requests are handled after so many stops */

struct held {
	pid_t tid;
	uint64_t serial, until_ns;
	bool is_exec;
	bool was_told;
};

struct tracer {
	int fd, main_fd, signal_fd;
	uint64_t last_serial;
	VEC(struct held) held;
	VEC(pid_t) leaving; /* threads to let go of when they stop */
};

static long request(int what, pid_t tid, long data)
{
	return ptrace(what, tid, NULL, data);
}

static bool tell(const struct tracer *t, const struct wire_hold_news *news)
{
	return send(t->fd, news, sizeof(*news), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

static bool take_leaving(struct tracer *t, pid_t tid)
{
	for (size_t i = 0; i < t->leaving.cnt; i++) {
		if (t->leaving.data[i] != tid)
			continue;
		t->leaving.data[i] = t->leaving.data[--t->leaving.cnt];
		return true;
	}
	return false;
}

static bool take_held(struct tracer *t, pid_t tid)
{
	for (size_t i = 0; i < t->held.cnt; i++) {
		if (t->held.data[i].tid != tid)
			continue;
		t->held.data[i] = t->held.data[--t->held.cnt];
		return true;
	}
	return false;
}

static void tell_held(struct tracer *t, struct held *h)
{
	const struct wire_hold_news news = {
		.kind = h->is_exec ? WIRE_HELD_EXEC : WIRE_HELD_LOADED,
		.tid = h->tid,
		.serial = h->serial,
		.until_ns = h->until_ns,
	};

	h->was_told = tell(t, &news);
}

/* Hold a thread. Without memory for it, it goes on: main finds the program later, and reports that. */
static void hold(struct tracer *t, pid_t tid, bool is_exec)
{
	const struct held fresh = {
		.tid = tid,
		.serial = ++t->last_serial,
		.until_ns = now_ns() + HOLD_LIMIT_NS,
		.is_exec = is_exec,
	};

	if (vec_push(&t->held, fresh))
		request(PTRACE_CONT, tid, 0);
	else
		tell_held(t, &t->held.data[t->held.cnt - 1]);
}

static bool is_from_bpf(pid_t tid)
{
	siginfo_t info;

	return !ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) && info.si_code == SI_KERNEL;
}

static void on_stop(struct tracer *t, pid_t tid, int status)
{
	int event = status >> 16, sig = WSTOPSIG(status);
	bool is_ours = !event && sig == SIGCHLD && is_from_bpf(tid);

	if (take_leaving(t, tid))
		request(PTRACE_DETACH, tid, event || is_ours ? 0 : sig);
	else if (event == PTRACE_EVENT_EXEC || is_ours)
		hold(t, tid, !is_ours);
	else if (event == PTRACE_EVENT_STOP && sig != SIGTRAP)
		request(PTRACE_LISTEN, tid, 0); /* until SIGCONT */
	else
		request(PTRACE_CONT, tid, event ? 0 : sig);
}

/* true: there may be more stops. */
static bool take_stops(struct tracer *t)
{
	struct signalfd_siginfo info[8];
	pid_t tid;
	int status;

	while (read(t->signal_fd, info, sizeof(info)) > 0)
		;
	for (int i = 0; i < STOPS_CAP; i++) {
		tid = waitpid(-1, &status, __WALL | __WNOTHREAD | WNOHANG);
		if (tid <= 0)
			return false;
		if (WIFSTOPPED(status))
			on_stop(t, tid, status);
		else if (!take_held(t, tid)) /* it has ended */
			take_leaving(t, tid);
	}
	return true;
}

static struct held *find_held(struct tracer *t, uint64_t serial)
{
	struct held *h;

	vec_each(&t->held, h)
		if (h->serial == serial)
			return h;
	return NULL;
}

static void go_on(struct tracer *t, struct held *h)
{
	request(PTRACE_CONT, h->tid, 0);
	*h = t->held.data[--t->held.cnt];
}

static void seize(struct tracer *t, const struct wire_hold_request *r)
{
	struct wire_hold_news news = { .kind = WIRE_HOLD_SEIZED, .tid = r->tid };

	if (request(PTRACE_SEIZE, r->tid, PTRACE_O_TRACEEXEC | (r->is_family ? CHILD_OPTIONS : 0)))
		news.err = -errno;
	tell(t, &news);
}

/* Let go of all threads of a process: a held thread at once, others when they have stopped. */
static void let_go(struct tracer *t, pid_t tgid)
{
	DIR *dir = proc_opendir(tgid, "task");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10); /* 0: "." and ".." */

		if (take_held(t, tid))
			request(PTRACE_DETACH, tid, 0);
		else if (tid && !request(PTRACE_INTERRUPT, tid, 0))
			(void)vec_push(&t->leaving, tid); /* on failure it stays traced */
	}
	if (dir)
		closedir(dir);
}

/* false: main is gone. */
static bool take_request(struct tracer *t)
{
	struct wire_hold_request r;
	ssize_t n = recv(t->fd, &r, sizeof(r), MSG_DONTWAIT);
	struct held *h;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n != sizeof(r))
		return false;
	switch (r.kind) {
	case WIRE_HOLD_SEIZE:
		seize(t, &r);
		break;
	case WIRE_HOLD_GO:
		h = find_held(t, r.serial);
		if (h)
			go_on(t, h);
		break;
	case WIRE_HOLD_LET_GO:
		let_go(t, r.tid);
		break;
	}
	return true;
}

/* Let threads go on that are due. Returns milliseconds until the next one is due or main must be told again;
 * -1: none. */
static int work_held(struct tracer *t)
{
	uint64_t now = now_ns(), next = UINT64_MAX;

	for (size_t i = t->held.cnt; i-- > 0;) {
		struct held *h = &t->held.data[i];
		uint64_t due = h->until_ns;

		if (due <= now) {
			go_on(t, h);
			continue;
		}
		if (!h->was_told)
			tell_held(t, h);
		if (!h->was_told && due > now + RETRY_NS)
			due = now + RETRY_NS;
		next = due < next ? due : next;
	}
	return next == UINT64_MAX ? -1 : (int)((next - now) / NS_PER_MS) + 1;
}

static void *run(void *arg)
{
	struct tracer *t = arg;
	struct pollfd p[] = { { .fd = t->fd, .events = POLLIN },
			      { .fd = t->signal_fd, .events = POLLIN },
			      { .fd = t->main_fd, .events = POLLIN } };
	bool is_wanted = true, has_stops = false;

	while (is_wanted) {
		int wait_ms = work_held(t);

		if (poll(p, 3, has_stops ? 0 : wait_ms) < 0 && errno != EINTR)
			break;
		if (has_stops || p[1].revents)
			has_stops = take_stops(t);
		if (p[0].revents)
			is_wanted = take_request(t);
		is_wanted &= !p[2].revents;
	}
	close(t->fd);
	close(t->signal_fd);
	vec_release(&t->held);
	vec_release(&t->leaving);
	free(t);
	return NULL;
}

int tracer_start(int fd, int main_fd)
{
	struct tracer *t = calloc(1, sizeof(*t));
	pthread_t thread;
	sigset_t set;
	int err;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (!t) {
		close(fd);
		return -ENOMEM;
	}
	t->fd = fd;
	t->main_fd = main_fd;
	t->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (t->signal_fd < 0) {
		err = -errno;
	} else {
		err = thread_start(&thread, run, t);
		if (!err) {
			pthread_detach(thread);
			return 0;
		}
		close(t->signal_fd);
	}
	close(fd);
	free(t);
	return err;
}
