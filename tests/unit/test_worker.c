/* SPDX-License-Identifier: MIT */
/* test_worker.c - the forked child that makes files: which descriptors it has, what becomes of it and of the files. */
#include "child.h"

#include <bpf/bpf.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "record/worker.h"

#define LIMIT_MS 20000
#define FILE_NS NS_PER_S /* for one file of a quick child */

enum {
	FD_OUT,
	FD_ERR,
	FD_FOLDER,
	FD_MEMORY,
	FD_MAP,
	FD_KEPT_CNT, /* those before are kept, those behind are not */
	FD_SOCKET = FD_KEPT_CNT,
	FD_OTHER_END,
	FD_PIPE,
	FD_PIPE_END,
	FD_EPOLL,
	FD_EVENT,
	FD_TIMER,
	FD_SIGNAL,
	FD_CHILD,
	FD_CNT
};

struct fds {
	int fd[FD_CNT];
	bool has_map; /* it takes a privilege */
};

static void open_all(struct fds *f)
{
	int *fd = f->fd;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	fd[FD_OUT] = STDOUT_FILENO;
	fd[FD_ERR] = STDERR_FILENO;
	fd[FD_FOLDER] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd[FD_MEMORY] = memfd_create("profile", MFD_CLOEXEC);
	fd[FD_MAP] = bpf_map_create(BPF_MAP_TYPE_ARRAY, "test", 4, 8, 1, NULL);
	f->has_map = fd[FD_MAP] >= 0;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd + FD_SOCKET), 0);
	assert_int_equal(pipe2(fd + FD_PIPE, O_CLOEXEC), 0);
	fd[FD_EPOLL] = epoll_create1(EPOLL_CLOEXEC);
	fd[FD_EVENT] = eventfd(0, EFD_CLOEXEC);
	fd[FD_TIMER] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	fd[FD_SIGNAL] = signalfd(-1, &set, SFD_CLOEXEC);
	fd[FD_CHILD] = (int)syscall(SYS_pidfd_open, getpid(), 0);
	for (int i = 0; i < FD_CNT; i++)
		assert_true(fd[i] >= 0 || i == FD_MAP);
}

static void close_all(struct fds *f)
{
	for (int i = FD_FOLDER; i < FD_CNT; i++)
		if (f->fd[i] >= 0)
			close(f->fd[i]);
}

static bool is_readable(int fd, int events)
{
	struct pollfd poller = { .fd = fd, .events = (short)events };

	return poll(&poller, 1, LIMIT_MS) == 1;
}

/* In the child: which of them there are, as bytes of the file. */
static int tell_which(void *ctx, size_t nr)
{
	const struct fds *f = ctx;
	char is_open[FD_CNT];

	for (int i = 0; i < FD_CNT; i++)
		is_open[i] = fcntl(f->fd[i], F_GETFD) >= 0;
	return pwrite(f->fd[FD_MEMORY], is_open, FD_CNT, 0) != FD_CNT;
}

TEST(test_descriptors)
{
	const struct worker_options opts = { .is_urgent = true };
	struct worker w = { 0 };
	struct fds f;
	char is_open[FD_CNT];

	open_all(&f);
	assert_int_equal(worker_start(&w, &opts, 1, tell_which, &f), 0);
	assert_true(is_readable(w.fd, POLLIN));
	assert_true(worker_reap(&w));
	assert_int_equal(pread(f.fd[FD_MEMORY], is_open, FD_CNT, 0), FD_CNT);
	for (int i = 0; i < FD_CNT; i++)
		if ((i != FD_MAP || f.has_map) && is_open[i] != (i < FD_KEPT_CNT))
			fail_msg("descriptor %d is %s", i, is_open[i] ? "open" : "closed");
	worker_release(&w);
	close_all(&f);
}

static int wait_for_the_end(void *ctx, size_t i)
{
	pause();
	return 0;
}

/* Who is at the other end need not wait for the child. */
TEST(test_connection)
{
	const struct worker_options opts = { .is_urgent = true };
	struct worker w = { 0 };
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	assert_int_equal(worker_start(&w, &opts, 1, wait_for_the_end, NULL), 0);
	close(fd[0]);
	assert_true(is_readable(fd[1], POLLRDHUP));
	assert_int_equal(kill(w.pid, 0), 0);
	worker_release(&w);
	assert_int_equal(w.pid, 0);
	close(fd[1]);
}

static bool is_reaped_within(struct worker *w, int limit_ms)
{
	for (int ms = 0; ms < limit_ms; ms += 10) {
		worker_check(w);
		if (worker_reap(w))
			return true;
		usleep(10000);
	}
	return false;
}

TEST(test_stop)
{
	const struct worker_options opts = { .what = "the test",
					     .is_urgent = true,
					     .file_ns = FILE_NS };
	struct worker w = { 0 };

	assert_int_equal(worker_start(&w, &opts, 1, wait_for_the_end, NULL), 0);
	assert_false(is_reaped_within(&w, 50));
	assert_true(is_reaped_within(&w, 5000));
	assert_true(w.was_stopped && !w.hung[0]);
	assert_int_equal(worker_start(&w, &opts, 1, wait_for_the_end, NULL), 0);
	assert_false(w.was_stopped);
	worker_release(&w);
}

/* Whom somebody traces does not end when it is killed, nor can it be reaped: as one that waits in the kernel. */
static pid_t start_tracer(pid_t pid)
{
	pid_t tracer;
	int fd[2];
	char is_traced = 0;

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	tracer = fork();
	if (!tracer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		is_traced = !ptrace(PTRACE_SEIZE, pid, NULL, (void *)(long)PTRACE_O_TRACEEXIT);
		if (write(fd[1], &is_traced, 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(fd[0], &is_traced, 1), 1);
	close(fd[0]);
	close(fd[1]);
	if (is_traced)
		return tracer;
	end_child(tracer);
	return 0;
}

TEST(test_hung)
{
	const struct worker_options opts = { .what = "the test",
					     .is_urgent = true,
					     .file_ns = FILE_NS };
	struct worker w = { 0 };
	pid_t pid, tracer;
	struct timespec begin, end;

	assert_int_equal(worker_start(&w, &opts, 1, wait_for_the_end, NULL), 0);
	pid = w.pid;
	tracer = start_tracer(pid);
	if (!tracer) {
		worker_release(&w);
		skip();
	}
	assert_true(is_reaped_within(&w, 5000));
	assert_int_equal(w.pid, 0);
	assert_int_equal(w.hung[0], pid);
	/* the next one is none the worse */
	assert_int_equal(worker_start(&w, &opts, 1, wait_for_the_end, NULL), 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	worker_release(&w);
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true(end.tv_sec - begin.tv_sec < 2);
	end_child(tracer);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int wait_for_byte(void *ctx, size_t i)
{
	const int *fds = ctx;
	char byte;

	close(fds[1]);
	return read(fds[0], &byte, 1) != 0;
}

/* A worker keeps descriptors of files only, and a pipe with a name is one. */
static void open_fifo(int fds[2])
{
	char path[] = "/tmp/heaptap-fifo-XXXXXX";

	assert_non_null(mkdtemp(path));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	fds[0] = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	fds[1] = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(unlink(path), 0);
	assert_true(fds[0] >= 0 && fds[1] >= 0);
	assert_int_equal(fcntl(fds[0], F_SETFL, 0), 0);
}

/* They end when nobody can write any more; the second one has a copy of the first one's descriptor. */
TEST(test_workers)
{
	const struct worker_options opts = { .what = "the test", .moment_ns = 1 };
	struct worker first = { 0 }, second = { 0 };
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT };
	int fds[2], set = keep_fd(epoll_create1(EPOLL_CLOEXEC));

	assert_false(worker_reap(&first));
	open_fifo(fds);
	assert_int_equal(worker_start(&first, &opts, 1, wait_for_byte, fds), 0);
	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, first.fd, &ev), 0);
	/* One that has not ended is not waited for. */
	assert_false(worker_reap(&first));
	assert_true(first.pid);
	assert_int_equal(worker_start(&second, &opts, 1, wait_for_byte, fds), 0);
	kill(first.pid, SIGKILL);
	assert_int_equal(epoll_wait(set, &ev, 1, 10000), 1);
	assert_true(worker_reap(&first));
	assert_int_equal(first.pid, 0);
	/* The set still has it; it is not told again. */
	assert_int_equal(epoll_wait(set, &ev, 1, 0), 0);
	ev = (struct epoll_event){ .events = EPOLLIN | EPOLLONESHOT };
	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, second.fd, &ev), 0);
	close(fds[1]);
	assert_int_equal(epoll_wait(set, &ev, 1, 10000), 1);
	assert_true(worker_reap(&second));
	worker_release(&first);
	worker_release(&second);
	close(fds[0]);
}

#define SLOW 1000 /* it does not end */
#define CRASH 1001
#define TOO_LONG 1002 /* longer than a quick child has, then well */

/* In the child: as the test says. */
static int make(void *ctx, size_t i)
{
	const int *what = ctx;

	switch (what[i]) {
	case SLOW:
		for (;;)
			pause();
	case CRASH:
		_exit(1);
	case TOO_LONG:
		usleep((FILE_NS + NS_PER_S / 2) / 1000);
		return 0;
	default:
		return what[i];
	}
}

/* As the event loop does; returns how long it took, in ms. file_ns 0: a child that takes as long as it takes. */
static uint64_t run(struct worker *w, uint64_t file_ns, const int *what, size_t cnt)
{
	const struct worker_options opts = { .what = "the test", .file_ns = file_ns };
	uint64_t begin_ns = now_ns();

	assert_int_equal(worker_start(w, &opts, cnt, make, (void *)what), 0);
	assert_true(w->pid);
	for (;;) {
		struct pollfd p = { .fd = w->fd, .events = POLLIN };

		poll(&p, 1, 20);
		worker_check(w);
		if (worker_reap(w))
			break;
		assert_true(now_ns() < begin_ns + 20 * NS_PER_S);
	}
	assert_false(w->pid);
	return (now_ns() - begin_ns) / 1000000;
}

static void check(const struct worker *w, size_t i, enum worker_result want, int want_err)
{
	int err;

	assert_int_equal(worker_result(w, i, &err), want);
	if (want == WORKER_OVER)
		assert_int_equal(err, want_err);
}

TEST(test_all_well)
{
	const int what[] = { 0, -ESRCH, 0 };
	struct worker w = { 0 };

	run(&w, FILE_NS, what, 3);
	check(&w, 0, WORKER_OVER, 0);
	check(&w, 1, WORKER_OVER, -ESRCH);
	check(&w, 2, WORKER_OVER, 0);
	worker_release(&w);
}

/* Who is slow holds up nobody else. Whether it is given up by the child or does not let go: those before it have
 * their files, those behind it are in the next child, and it is for a slow one. */
TEST(test_one_is_slow)
{
	static const int kinds[] = { -ETIME, SLOW, TOO_LONG };
	struct worker w = { 0 };

	for (size_t i = 0; i < 3; i++) {
		const int what[] = { 0, kinds[i], 0 };
		uint64_t ms = run(&w, FILE_NS, what, 3);

		print_message("# %d: %d ms\n", kinds[i], (int)ms);
		assert_true(ms < FILE_NS / 1000000 + 900);
		check(&w, 0, WORKER_OVER, 0);
		check(&w, 1, WORKER_TOO_SLOW, 0);
		check(&w, 2, WORKER_NOT_BEGUN, 0);
	}
	worker_release(&w);
}

/* Without a limit it takes as long as it takes, and the others are made as well. */
TEST(test_no_limit)
{
	static const int what[] = { TOO_LONG, -ETIME, 0 };
	struct worker w = { 0 };

	run(&w, 0, what, 3);
	check(&w, 0, WORKER_OVER, 0);
	check(&w, 1, WORKER_OVER, -ETIME);
	check(&w, 2, WORKER_OVER, 0);
	assert_true(w.took_ns > FILE_NS);
	worker_release(&w);
}

/* It is not tried for ever. */
TEST(test_crash)
{
	static const int what[] = { 0, CRASH, 0 }, at_once = CRASH;
	struct worker w = { 0 };

	run(&w, FILE_NS, what, 3);
	check(&w, 0, WORKER_OVER, 0);
	check(&w, 1, WORKER_OVER, -EINTR);
	check(&w, 2, WORKER_NOT_BEGUN, 0);
	run(&w, FILE_NS, &at_once, 1);
	check(&w, 0, WORKER_OVER, -EINTR);
	worker_release(&w);
}

TEST(test_release_at_work)
{
	static const int what = SLOW;
	const struct worker_options opts = { .what = "the test" };
	struct worker w = { 0 };
	uint64_t begin_ns = now_ns();

	assert_int_equal(worker_start(&w, &opts, 1, make, (void *)&what), 0);
	worker_release(&w);
	assert_true(now_ns() < begin_ns + NS_PER_S);
}

RUN_TESTS()
