/* SPDX-License-Identifier: MIT */
/* test_worker.c - the daemon's forked child: which descriptors it has, and what becomes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "result/worker.h"

#define LIMIT_MS 20000

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
static int tell_which(void *ctx)
{
	const struct fds *f = ctx;
	char is_open[FD_CNT];

	for (int i = 0; i < FD_CNT; i++)
		is_open[i] = fcntl(f->fd[i], F_GETFD) >= 0;
	return pwrite(f->fd[FD_MEMORY], is_open, FD_CNT, 0) != FD_CNT;
}

static void test_descriptors(void **state)
{
	const struct worker_options opts = { .is_urgent = true };
	struct worker w = { 0 };
	struct fds f;
	char is_open[FD_CNT];
	uint64_t cpu_ns;

	(void)state;
	open_all(&f);
	assert_int_equal(worker_start(&w, &opts, tell_which, &f), 0);
	assert_true(is_readable(w.fd, POLLIN));
	assert_true(worker_reap(&w, "the test", &cpu_ns));
	assert_int_equal(pread(f.fd[FD_MEMORY], is_open, FD_CNT, 0), FD_CNT);
	for (int i = 0; i < FD_CNT; i++)
		if ((i != FD_MAP || f.has_map) && is_open[i] != (i < FD_KEPT_CNT))
			fail_msg("descriptor %d is %s", i, is_open[i] ? "open" : "closed");
	close_all(&f);
}

static int wait_for_the_end(void *ctx)
{
	(void)ctx;
	pause();
	return 0;
}

/* Who is at the other end need not wait for the child. */
static void test_connection(void **state)
{
	const struct worker_options opts = { .is_urgent = true };
	struct worker w = { 0 };
	int fd[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	assert_int_equal(worker_start(&w, &opts, wait_for_the_end, NULL), 0);
	close(fd[0]);
	assert_true(is_readable(fd[1], POLLRDHUP));
	assert_int_equal(kill(w.pid, 0), 0);
	worker_kill(&w);
	assert_int_equal(w.pid, 0);
	close(fd[1]);
}

static bool is_reaped_within(struct worker *w, int limit_ms)
{
	uint64_t cpu_ns;

	for (int ms = 0; ms < limit_ms; ms += 10) {
		worker_check(w);
		if (worker_reap(w, "the test", &cpu_ns))
			return true;
		usleep(10000);
	}
	return false;
}

static void test_stop(void **state)
{
	const struct worker_options opts = { .is_urgent = true };
	struct worker w = { 0 };

	(void)state;
	assert_int_equal(worker_start(&w, &opts, wait_for_the_end, NULL), 0);
	assert_false(is_reaped_within(&w, 50));
	worker_stop(&w);
	assert_true(is_reaped_within(&w, 5000));
	assert_true(w.was_stopped && !w.hung[0]);
	assert_int_equal(worker_start(&w, &opts, wait_for_the_end, NULL), 0);
	assert_false(w.was_stopped);
	worker_kill(&w);
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
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
	return 0;
}

static void test_hung(void **state)
{
	const struct worker_options opts = { .is_urgent = true };
	struct worker w = { 0 };
	pid_t pid, tracer;
	struct timespec begin, end;

	(void)state;
	assert_int_equal(worker_start(&w, &opts, wait_for_the_end, NULL), 0);
	pid = w.pid;
	tracer = start_tracer(pid);
	if (!tracer) {
		worker_kill(&w);
		skip();
	}
	worker_stop(&w);
	assert_true(is_reaped_within(&w, 5000));
	assert_int_equal(w.pid, 0);
	assert_int_equal(w.hung[0], pid);
	/* the next one is none the worse */
	assert_int_equal(worker_start(&w, &opts, wait_for_the_end, NULL), 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	worker_kill(&w);
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true(end.tv_sec - begin.tv_sec < 2);
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_connection),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_hung),
	};

	return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
