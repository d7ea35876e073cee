/* SPDX-License-Identifier: MIT */
/*
 * visit.c - see visit.h.
 *
 * The report is a message on a socket pair, and so is a descriptor (SCM_RIGHTS). A step is the address of its
 * function: visitor and accessor are forks of the same program. Both close all other descriptors, so that a
 * visitor which lives longer keeps nothing of its maker's open.
 */
#include "tap/visit.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/thread.h"

#define REPORT_FD 3
#define ACCESSOR_FD 4
/* All of a visit: it is prepared, stops the process for at most THREADS_STOP_LIMIT_NS, and gets its caller back. */
#define VISIT_MS 1600
#define PREPARE_NS 300000000ULL
#define STARVED_NS \
	800000000ULL /* the latest at which that time begins anew, while it gets no processor */
#define REAP_TRIES 25
#define REAP_PAUSE_US 200

/*
 * Accessor.
 */

static int send_all(int fd, const void *data, size_t bytes, int sent_fd)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)data, bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (sent_fd >= 0) {
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.align), &sent_fd, sizeof(int));
	}
	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)bytes ? 0 : n < 0 ? -errno : -EIO;
}

int visit_send_fd(int fd)
{
	static const char nothing;

	return send_all(REPORT_FD, &nothing, sizeof(nothing), fd);
}

static void __attribute__((noreturn)) run_accessor(void *ctx, struct visit_shared *shared)
{
	visit_step step;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	thread_take_precedence();
	thread_use_short_slices();
	while (recv(ACCESSOR_FD, &step, sizeof(step), 0) == sizeof(step) && !shared->is_over) {
		shared->why.text[0] = '\0';
		shared->err = step(ctx, shared);
		if (shared->is_over || send_all(ACCESSOR_FD, &step, sizeof(step), -1))
			break;
	}
	_exit(0);
}

static int start_accessor(struct visit *v, void *ctx)
{
	int pair[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		return -errno;
	child = fork();
	if (!child) {
		close(pair[0]);
		if (pair[1] != ACCESSOR_FD && dup2(pair[1], ACCESSOR_FD) < 0)
			_exit(1);
		syscall(SYS_close_range, ACCESSOR_FD + 1, ~0U, 0);
		run_accessor(ctx, v->shared);
	}
	close(pair[1]);
	if (child < 0) {
		close(pair[0]);
		return -errno;
	}
	v->accessor_fd = pair[0];
	v->accessor_pid = child;
	return 0;
}

/* Does the accessor wait for a processor, and not for a page? */
static bool is_starved(const struct visit *v)
{
	return threads_state(v->accessor_pid, v->accessor_pid) == 'R';
}

/* Until end_ns; its time begins anew while it gets no processor, up to starved_end_ns. The timer's signal ends recv(). */
static int do_step(struct visit *v, visit_step step, uint64_t end_ns, uint64_t starved_end_ns)
{
	visit_step done;
	ssize_t n;

	if (v->accessor_err)
		return v->accessor_err;
	if (send_all(v->accessor_fd, &step, sizeof(step), -1))
		return v->accessor_err = -EIO;
	while ((n = recv(v->accessor_fd, &done, sizeof(done), 0)) < 0 && errno == EINTR) {
		const uint64_t now = now_ns();
		const bool starves = starved_end_ns && is_starved(v);

		if (starves && now < starved_end_ns)
			end_ns = now + PREPARE_NS;
		if (now < end_ns)
			continue;
		v->shared->is_over = 1;
		return v->accessor_err = starves ? -ETIME : -ETIMEDOUT;
	}
	if (n == sizeof(done))
		return v->shared->err;
	v->shared->is_over = 1;
	return v->accessor_err = -EIO;
}

int visit_do(struct visit *v, visit_step step)
{
	return do_step(v, step, threads_end_ns(v->threads), 0);
}

/*
 * Visitor.
 */

bool visit_is_alone(const struct visit *v)
{
	struct pollfd p = { .fd = v->report_fd };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

static int refuse_tracer(pid_t pid, struct err *why)
{
	char name[32] = "";
	pid_t tracer = threads_tracer(pid, name, sizeof(name));

	if (tracer <= 0)
		return err_set(why, -EPERM,
			       "it cannot be stopped: %s (are ptrace and kcmp allowed?)",
			       strerror(EPERM));
	if (!strncmp(name, "heaptap", 7))
		return err_set(why, -EAGAIN, "an earlier attempt by %s (PID %d) has not ended yet",
			       name, tracer);
	return err_set(why, -EPERM, "it is being debugged or traced, by %s (PID %d)", name, tracer);
}

static int stop(struct visit *v, struct err *why)
{
	int err = threads_stop(v->pid, &v->threads);

	if (err == -EPERM)
		return refuse_tracer(v->pid, why);
	if (err == -ESRCH)
		return err_set(why, err, "it has ended");
	if (err == -ETIMEDOUT)
		return err_set(why, -ETIME,
			       "it did not stop within 0.2 s: a thread gets no CPU time, or it "
			       "is executing another program");
	if (err == -EAGAIN)
		return err_set(why, err, "it is executing another program");
	if (err == -E2BIG)
		return err_set(why, err, "too many processes share its memory");
	if (err)
		return err_set(why, err, "it cannot be stopped: %s", strerror(-err));
	v->shared->place_cnt =
		(uint32_t)threads_places(v->threads, v->shared->place, VISIT_PLACES_CAP);
	if (threads_cnt(v->threads) > VISIT_PLACES_CAP)
		return err_set(why, -E2BIG, "it has more than %d threads", VISIT_PLACES_CAP);
	return 0;
}

static void take_why(const struct visit *v, int err, struct err *why)
{
	if (why->text[0])
		return;
	if (err == v->accessor_err)
		err_set(why, err, "%s",
			err == -ETIMEDOUT ? "its memory does not answer" :
			err == -ETIME	  ? "heaptap gets no CPU time to read its memory" :
					    "heaptap's process that reads its memory was killed");
	else
		err_set(why, err, "%s",
			v->shared->why.text[0] ? v->shared->why.text : strerror(-err));
}

static int prepare(struct visit *v, const struct visit_work *work, void *ctx)
{
	const uint64_t now = now_ns();
	int err = threads_start_timer();

	if (!err)
		err = start_accessor(v, ctx);
	return err ? err : do_step(v, work->prepare, now + PREPARE_NS, now + STARVED_NS);
}

static void reap(pid_t child)
{
	for (int i = 0; i < REAP_TRIES && !waitpid(child, NULL, WNOHANG); i++)
		usleep(REAP_PAUSE_US);
}

/* Not left to the first process, which may reap none but its own. */
static void end_accessor(struct visit *v)
{
	if (v->accessor_pid <= 0)
		return;
	kill(v->accessor_pid, SIGKILL);
	reap(v->accessor_pid);
	v->accessor_pid = 0;
}

/* Whatever the terminal sends to its maker must not stop or end it. */
static void stand_apart(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL); /* threads_start_timer() lets its own through */
	signal(SIGCHLD, SIG_DFL);
	setsid();
	thread_take_precedence(); /* threads of others stand still for it */
}

static void __attribute__((noreturn))
run_visitor(struct visit *v, const struct visit_work *work, void *ctx)
{
	struct visit_report *report = calloc(1, sizeof(*report));

	if (!report)
		_exit(1);
	stand_apart();
	thread_use_short_slices();
	report->err = prepare(v, work, ctx);
	if (!report->err)
		report->err = stop(v, &report->why);
	if (!report->err)
		report->err = work->stopped(ctx, v, &report->why);
	if (report->err)
		take_why(v, report->err, &report->why);
	report->result = v->shared->result;
	if (v->accessor_err) /* before anybody goes on: a write of it may be under way */
		end_accessor(v);
	if (v->threads) {
		report->thread_cnt = (uint32_t)threads_cnt(v->threads);
		report->stopped_ns = threads_resume(v->threads);
	}
	send_all(v->report_fd, report, sizeof(*report), -1);
	end_accessor(v);
	threads_free(v->threads);
	_exit(0);
}

/*
 * Who waits for it.
 */

/* Receive one message: the report (1), or a descriptor (0). */
static int receive(int fd, struct visit_report *report, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { report, sizeof(*report) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	const struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&msg);

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		if (*ret_fd >= 0)
			close(*ret_fd);
		memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
	}
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EIO;
	return n == sizeof(*report) ? 1 : n ? 0 : -EIO;
}

static int await_report(int fd, struct visit_report *report, int *ret_fd)
{
	const uint64_t end_ns = now_ns() + VISIT_MS * NS_PER_MS;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int rc = 0;

	while (!rc) {
		uint64_t now = now_ns();

		if (now >= end_ns)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)((end_ns - now) / NS_PER_MS) + 1) > 0)
			rc = receive(fd, report, ret_fd);
	}
	return rc < 0 ? rc : 0;
}

static pid_t start_visitor(struct visit *v, const struct visit_work *work, void *ctx, int pair[2])
{
	pid_t child = fork();
	int null_fd;

	if (child)
		return child < 0 ? -errno : child;
	null_fd = null_fd_open();
	if (dup2(pair[1], REPORT_FD) < 0 || null_fd < 0)
		_exit(1);
	for (int fd = 0; fd < 3; fd++)
		dup2(null_fd, fd);
	syscall(SYS_close_range, REPORT_FD + 1, ~0U, 0);
	v->report_fd = REPORT_FD;
	run_visitor(v, work, ctx);
}

int visit_process(pid_t pid, const struct visit_work *work, void *ctx, struct visit_report *report,
		  int *ret_fd)
{
	struct visit v = { .pid = pid, .accessor_fd = -1 };
	int pair[2], fd = -1, err;
	pid_t child;

	*report = (struct visit_report){ 0 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return report->err = err_set_os(&report->why, -errno, "cannot create a socket");
	v.shared = mmap(NULL, sizeof(*v.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	child = v.shared == MAP_FAILED ? -ENOMEM : start_visitor(&v, work, ctx, pair);
	close(pair[1]);
	err = child < 0 ? child : await_report(pair[0], report, &fd);
	if (err == -ETIMEDOUT)
		err_set(&report->why, err, "the attempt did not end in time");
	else if (err)
		err_set_os(&report->why, err, "heaptap's process that stops it was killed");
	close(pair[0]);
	if (v.shared != MAP_FAILED)
		munmap(v.shared, sizeof(*v.shared));
	if (child > 0)
		reap(child);
	report->err = err ? err : report->err;
	if (ret_fd)
		*ret_fd = fd;
	else if (fd >= 0)
		close(fd);
	return report->err;
}
