/* SPDX-License-Identifier: MIT */
/*
 * guest - a program that notices when something is done to it: a target for the tap.
 *
 *	guest THREADS [seccomp]
 *
 * That many threads allocate, check every byte that they wrote, resize and free, some of it each other's. Beside them
 * threads wait in calls that a stop may end with EINTR, which nobody here expects; threads are born and die; children
 * are forked that allocate, and others that execute a program; a signal comes 2 000 times a second. What is wrong is
 * said (BAD) and ends it by abort(). Says READY, then "AT <pairs>" whenever it is told something; ends with its input,
 * with exit status 7. With seccomp, who makes a memory file is killed. E2E_REST_US: so long each thread rests after each
 * half a thousand blocks (0).
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 64
#define SHARED 256

static volatile uint64_t pair_cnt, signal_cnt;
static unsigned char *shared[SHARED];
static long rest_us;

static void bad(const char *what)
{
	printf("BAD %s: %s\n", what, strerror(errno));
	fflush(stdout);
	abort();
}

/* Its size, then that size's pattern to the end. */
static unsigned char *fill(unsigned char *block, uint32_t bytes)
{
	if (!block)
		bad("allocation");
	memset(block, (unsigned char)(bytes * 31), bytes);
	memcpy(block, &bytes, sizeof(bytes));
	return block;
}

static void check(const unsigned char *block, uint32_t up_to)
{
	uint32_t bytes;

	memcpy(&bytes, block, sizeof(bytes));
	for (uint32_t i = sizeof(bytes); i < bytes && i < up_to; i++)
		if (block[i] != (unsigned char)(bytes * 31))
			bad("block");
}

/* Absolute: a signal ends no call that is then made again with what is left. */
static void have_rest(void)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += rest_us * 1000;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
}

static void *allocate(void *arg)
{
	uint32_t random = (uint32_t)(uintptr_t)arg * 7919 + 1;
	unsigned char *own[BLOCKS] = { 0 };

	for (unsigned turn = 1;; turn++) {
		unsigned char **at = &own[random >> 8 & (BLOCKS - 1)], *other;
		uint32_t bytes = 16 + (random >> 14 & 1023), how = random >> 27;

		random = random * 1103515245 + 12345;
		if (*at)
			check(*at, UINT32_MAX);
		if (*at && how < 4) {
			uint32_t old;

			memcpy(&old, *at, sizeof(old));
			*at = realloc(*at, bytes);
			check(*at, old < bytes ? old : bytes);
			fill(*at, bytes);
		} else if (how < 8) {
			free(*at);
			*at = fill(calloc(1, bytes), bytes);
		} else if (how < 12) { /* freed by whoever comes by */
			other = __atomic_exchange_n(&shared[random % SHARED], *at,
						    __ATOMIC_ACQ_REL);
			if (other)
				check(other, UINT32_MAX);
			free(other);
			*at = NULL;
		} else if (how < 13) {
			free(*at);
			*at = fill(aligned_alloc(64, (bytes + 63) & ~63U), (bytes + 63) & ~63U);
		} else {
			free(*at);
			*at = fill(malloc(bytes), bytes);
		}
		__atomic_fetch_add(&pair_cnt, 1, __ATOMIC_RELAXED);
		if (rest_us && turn % 512 == 0)
			have_rest();
	}
	return NULL;
}

static void *wait_epoll(void *arg)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event;

	for (;;)
		if (epoll_wait(fd, &event, 1, arg ? -1 : 37) < 0)
			bad("epoll_wait");
	return NULL;
}

static void *wait_semaphore(void *arg)
{
	int id = semget(IPC_PRIVATE, 1, 0600);
	struct sembuf down = { 0, -1, 0 };
	const struct timespec limit = { 0, 50000000 };

	for (;;)
		if (semtimedop(id, &down, 1, &limit) < 0 && errno != EAGAIN)
			bad("semtimedop");
	return arg;
}

static void *wait_clock(void *arg)
{
	const struct timespec pause = { 0, 11000000 };

	for (;;) {
		if (nanosleep(&pause, NULL))
			bad("nanosleep");
		if (poll(NULL, 0, 13) < 0)
			bad("poll");
		free(malloc(1000));
	}
	return arg;
}

static void *wait_event(void *arg)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	uint64_t n;

	if (read(fd, &n, sizeof(n)) < 0)
		bad("read");
	return arg;
}

static void *live_shortly(void *arg)
{
	unsigned char *block[8];

	for (int i = 0; i < 8; i++)
		block[i] = fill(malloc(100 + i), 100 + i);
	for (int i = 0; i < 8; i++) {
		check(block[i], UINT32_MAX);
		free(block[i]);
	}
	return arg;
}

static void *bear_threads(void *arg)
{
	pthread_t thread[10];

	for (;;) {
		for (int i = 0; i < 10; i++)
			if (pthread_create(&thread[i], NULL, live_shortly, NULL))
				bad("pthread_create");
		for (int i = 0; i < 10; i++)
			pthread_join(thread[i], NULL);
		usleep(1000);
	}
	return arg;
}

static void *bear_children(void *arg)
{
	int status;
	pid_t pid;

	for (;;) {
		pid = fork();
		if (!pid) {
			live_shortly(NULL);
			_exit(9);
		}
		if (waitpid(pid, &status, 0) != pid || status != 9 << 8)
			bad("a forked child");
		pid = vfork();
		if (!pid) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		if (waitpid(pid, &status, 0) != pid || status)
			bad("a child that executes");
		usleep(rest_us ? 6000 : 2000);
	}
	return arg;
}

static void on_signal(int sig)
{
	(void)sig;
	signal_cnt++;
}

static void forbid_memory_files(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* the call's number */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { 4, filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		bad("seccomp");
}

static void begin(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, arg))
		bad("pthread_create");
}

/* Only the busy ones get it: SA_RESTART is no help for some of the calls. */
static void begin_signals(void)
{
	const struct itimerval timer = { { 0, 500 }, { 0, 500 } };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

int main(int argc, char **argv)
{
	int thread_cnt = argc > 1 ? atoi(argv[1]) : 4;
	sigset_t alarm;
	char line[64];

	rest_us = getenv("E2E_REST_US") ? strtol(getenv("E2E_REST_US"), NULL, 10) : 0;
	if (argc > 2 && !strcmp(argv[2], "seccomp"))
		forbid_memory_files();
	for (int i = 0; i < thread_cnt; i++)
		begin(allocate, (void *)(uintptr_t)(i + 1));
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	begin(wait_epoll, NULL);
	begin(wait_epoll, &alarm);
	begin(wait_semaphore, NULL);
	begin(wait_clock, NULL);
	begin(wait_event, NULL);
	begin(bear_threads, NULL);
	begin(bear_children, NULL);
	begin_signals();
	puts("READY");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		printf("AT %llu\n", (unsigned long long)pair_cnt);
		fflush(stdout);
	}
	fflush(stdout);
	_exit(7);
}
