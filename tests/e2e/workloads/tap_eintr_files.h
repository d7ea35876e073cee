/* SPDX-License-Identifier: MIT */
/* tap_eintr_files.h - what the system calls of tap_eintr_calls.h wait for: descriptors, queues, locks on which nothing happens. */
#ifndef E2E_TAP_EINTR_FILES_H
#define E2E_TAP_EINTR_FILES_H

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#define LIMIT_MS 40
#define FOR_EVER (-1)
#define AWAITED_SIGNAL (SIGRTMIN + 3) /* blocked, nobody sends it */

void bad(const char *what);

struct call_state {
	int is_set, fd[2], id;
	pid_t child;
	uint32_t word, word2;
	unsigned long context;
	char text[64];
	struct sockaddr_un address;
};

#define MUST(what)                  \
	do {                        \
		if ((what) < 0)     \
			bad(#what); \
	} while (0)
#define SET_UP(name) static void name(struct call_state *s)

/* Times. */
static const struct timespec limit_ts = { 0, LIMIT_MS * 1000000L };

static struct timespec end_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	ts.tv_nsec += limit_ts.tv_nsec;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_nsec -= 1000000000;
		ts.tv_sec++;
	}
	return ts;
}

static void block_awaited(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, AWAITED_SIGNAL);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* Descriptors to wait on. */
SET_UP(set_pipe)
{
	MUST(pipe2(s->fd, O_CLOEXEC));
}
SET_UP(set_full_pipe)
{
	char page[4096] = { 0 };

	set_pipe(s);
	fcntl(s->fd[1], F_SETFL, O_NONBLOCK);
	while (write(s->fd[1], page, sizeof(page)) > 0)
		;
	fcntl(s->fd[1], F_SETFL, 0);
}
SET_UP(set_epoll)
{
	MUST(s->fd[0] = epoll_create1(EPOLL_CLOEXEC));
}
SET_UP(set_event)
{
	MUST(s->fd[0] = eventfd(0, EFD_CLOEXEC));
}
SET_UP(set_full_event)
{
	MUST(s->fd[0] = eventfd(0xfffffffeU, EFD_CLOEXEC));
}
SET_UP(set_timer)
{
	const struct itimerspec every = { { 0, 0 }, { 0, 0 } };

	MUST(s->fd[0] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
	MUST(timerfd_settime(s->fd[0], 0, &every, NULL));
}
SET_UP(set_signalfd)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, AWAITED_SIGNAL);
	MUST(s->fd[0] = signalfd(-1, &set, SFD_CLOEXEC));
}
SET_UP(set_inotify)
{
	MUST(s->fd[0] = inotify_init1(IN_CLOEXEC));
}
SET_UP(set_socket)
{
	MUST(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, s->fd));
}
SET_UP(set_full_socket)
{
	char page[4096] = { 0 };

	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->fd));
	while (send(s->fd[1], page, sizeof(page), MSG_DONTWAIT) > 0)
		;
}
static void limit_socket(int fd)
{
	const struct timeval limit = { 0, LIMIT_MS * 1000 };

	MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	MUST(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)));
}
SET_UP(set_limited_socket)
{
	set_socket(s);
	limit_socket(s->fd[0]);
}
SET_UP(set_limited_full_socket)
{
	set_full_socket(s);
	limit_socket(s->fd[1]);
}
/* An abstract name: nothing is left. */
SET_UP(set_listener)
{
	static unsigned n;

	s->address.sun_family = AF_UNIX;
	snprintf(s->address.sun_path + 1, sizeof(s->address.sun_path) - 1, "heaptap-eintr-%d-%u",
		 (int)getpid(), __atomic_fetch_add(&n, 1, __ATOMIC_RELAXED));
	MUST(s->fd[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	MUST(bind(s->fd[0], (struct sockaddr *)&s->address, sizeof(s->address)));
	MUST(listen(s->fd[0], 0));
}
SET_UP(set_limited_listener)
{
	set_listener(s);
	limit_socket(s->fd[0]);
}
SET_UP(set_full_backlog)
{
	int fd;

	set_listener(s);
	MUST(fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	MUST(connect(fd, (struct sockaddr *)&s->address, sizeof(s->address)));
	MUST(s->fd[1] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}
SET_UP(set_file)
{
	MUST(s->fd[0] = memfd_create("eintr", MFD_CLOEXEC));
	MUST(ftruncate(s->fd[0], 4096));
}
/* Somebody else has the lock: another description of the same file, or another process. */
SET_UP(set_locked)
{
	char path[64];

	set_file(s);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->fd[0]);
	MUST(s->fd[1] = open(path, O_RDWR | O_CLOEXEC));
	MUST(flock(s->fd[1], LOCK_EX));
}
static struct flock whole_file(void)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET };
}
SET_UP(set_ofd_locked)
{
	struct flock lock = whole_file();

	set_locked(s);
	MUST(fcntl(s->fd[1], F_OFD_SETLK, &lock));
}
SET_UP(set_child)
{
	MUST(s->child = fork());
	if (!s->child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}
SET_UP(set_fifo)
{
	static unsigned n;

	snprintf(s->text, sizeof(s->text), "/dev/shm/eintr-%d-%u", (int)getpid(),
		 __atomic_fetch_add(&n, 1, __ATOMIC_RELAXED));
	MUST(mkfifo(s->text, 0600));
	MUST(s->fd[0] = open(s->text, O_PATH | O_CLOEXEC));
	MUST(unlink(s->text));
	snprintf(s->text, sizeof(s->text), "/proc/self/fd/%d", s->fd[0]);
}

/* Queues and counters, of an IPC namespace that ends with the program. */
SET_UP(set_semaphore)
{
	MUST(s->id = semget(IPC_PRIVATE, 1, 0600));
}
SET_UP(set_queue)
{
	MUST(s->id = msgget(IPC_PRIVATE, 0600));
}
SET_UP(set_full_queue)
{
	struct {
		long kind;
		char text[4096];
	} m = { 1, "" };

	set_queue(s);
	while (!msgsnd(s->id, &m, sizeof(m.text), IPC_NOWAIT))
		;
}
SET_UP(set_mq)
{
	static unsigned n;
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 16 };

	snprintf(s->text, sizeof(s->text), "/eintr-%d-%u", (int)getpid(),
		 __atomic_fetch_add(&n, 1, __ATOMIC_RELAXED));
	MUST(s->fd[0] = mq_open(s->text, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &attr));
	MUST(mq_unlink(s->text));
}
SET_UP(set_full_mq)
{
	set_mq(s);
	MUST(mq_send(s->fd[0], "x", 1, 0));
}
SET_UP(set_aio)
{
	MUST(syscall(SYS_io_setup, 4, &s->context));
}
SET_UP(set_uring)
{
	struct io_uring_params params;

	memset(&params, 0, sizeof(params));
	s->fd[0] = (int)syscall(SYS_io_uring_setup, 4, &params);
	MUST(s->fd[0]);
}
/* A lock that a thread has which does nothing. */
static volatile pid_t idle_tid;
static void *be_idle(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	idle_tid = (pid_t)syscall(SYS_gettid);
	for (;;)
		pause();
	return arg;
}
SET_UP(set_pi)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_t thread;

	pthread_mutex_lock(&mutex);
	if (!idle_tid && pthread_create(&thread, NULL, be_idle, NULL))
		bad("pthread_create");
	pthread_mutex_unlock(&mutex);
	while (!idle_tid)
		sched_yield();
	s->word = (uint32_t)idle_tid;
	s->word2 = 0;
}

#endif
