/* SPDX-License-Identifier: MIT */
/*
 * hostile.c - programs that do what a profiler would rather not meet. E2E_MODE=
 * longjmp: with an allocator of its own, out of which a signal handler jumps.
 * handler: a signal handler that allocates, arriving inside malloc; =altstack: on another stack.
 * thread-death: threads that end inside malloc.
 * main-gone: the main thread has ended before anybody attaches.
 * seccomp: a filter that kills the process at any system call it does not need.
 * exec-storm: executes itself 60 times, then works.
 * pace: a thread allocates all the time; for every line on stdin "COST <ns>", the best cost of a
 * malloc and free; for the line "end" it ends.
 * The first four use the allocator below, because what they do would break the one of a libc.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "ledger.h"

static sigjmp_buf back;
static volatile int in_handler;

#ifdef OWN_ALLOCATOR
/*
 * Blocks are cut off a large piece and never used again: safe in handlers and when left in the
 * middle. Every interrupt_every-th call of a thread that set it is left, or interrupted.
 */
static char *_Atomic piece;
static __thread int interrupt_every, interrupt_cnt;
static __thread bool ends_inside;

__attribute__((noinline)) void *malloc(size_t size)
{
	char *p;

	if (!piece) {
		char *none = NULL;

		p = mmap(NULL, 1UL << 34, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (!__atomic_compare_exchange_n((char **)&piece, &none, p, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE))
			munmap(p, 1UL << 34);
	}
	if (interrupt_every && !in_handler && ++interrupt_cnt % interrupt_every == 0) {
		if (ends_inside)
			syscall(SYS_exit, 0);
		syscall(SYS_tgkill, getpid(), gettid(), SIGUSR2);
	}
	p = __atomic_fetch_add((char **)&piece, (size + 31) & ~15UL, __ATOMIC_ACQ_REL);
	*(size_t *)p = size;
	return p + 16;
}

__attribute__((noinline)) void free(void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

__attribute__((noinline)) void *calloc(size_t n, size_t size)
{
	void *p;

	if (size && n > SIZE_MAX / size)
		return NULL;
	p = malloc(n * size);
	__asm__ volatile("" : "+r"(p));
	return p;
}

__attribute__((noinline)) void *realloc(void *old, size_t size)
{
	void *p = malloc(size);

	if (old) {
		size_t had = *(size_t *)((char *)old - 16);

		memcpy(p, old, had < size ? had : size);
		free(old);
	}
	return p;
}

static int handled;
static void *handler_block[4096];

SITE void site_handler(void)
{
	void *p = malloc(1019);

	handler_block[handled++] = p;
	if (handled % 3 == 0)
		free(handler_block[handled - 1]);
	__asm__ volatile("");
}

static void allocate_in_handler(int sig)
{
	(void)sig;
	in_handler = 1;
	site_handler();
	in_handler = 0;
}

static void jump_out(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

SITE void *site_interrupted(size_t size)
{
	void *p;

	if (sigsetjmp(back, 1))
		return NULL;
	p = malloc(size);
	return led_alloc("site_interrupted", p, size);
}

static void interrupted(void (*handler)(int), int flags, int cnt)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags };

	sigaction(SIGUSR2, &sa, NULL);
	interrupt_every = 7;
	for (int i = 0; i < cnt; i++) {
		void *p = site_interrupted(1021);

		if (p && i % 2)
			free(led_free(p));
	}
	interrupt_every = 0;
}

static void run_handler(int flags)
{
	static char stack[65536];
	const stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
	int freed;

	if (flags & SA_ONSTACK)
		sigaltstack(&other, NULL);
	interrupted(allocate_in_handler, flags, 2003);
	freed = handled / 3;
	led_bulk("site_handler", 1019, handled, handled - freed);
	e2e_self_check("site_handler", 191 * 1019, 191); /* 2003 / 7 = 286 signals, 95 freed */
}

SITE void *site_before_death(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

static void *dies(void *arg)
{
	(void)arg;
	led_name_thread("dies");
	interrupt_every = 5;
	ends_inside = true;
	for (;;)
		site_before_death(1031);
	return NULL;
}

static void *lives(void *arg)
{
	(void)arg;
	led_name_thread("lives");
	for (int i = 0; i < 5003; i++) {
		void *p = site_interrupted(1033);

		if (i % 3)
			free(led_free(p));
	}
	return NULL;
}

static void run_deaths(void)
{
	pthread_t thread, other;

	pthread_create(&other, NULL, lives, NULL);
	for (int i = 0; i < 101; i++) {
		if (pthread_create(&thread, NULL, dies, NULL))
			led_die("hostile: no thread\n");
		pthread_join(thread, NULL);
	}
	pthread_join(other, NULL);
}
#endif

SITE void *site_plain(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

static void plain_work(void)
{
	for (int i = 0; i < 1009; i++) {
		void *p = site_plain(1039 + i);

		if (i % 4)
			free(led_free(p));
	}
}

static void *survivor(void *arg)
{
	(void)arg;
	led_name_thread("survivor");
	usleep(300000); /* until the main thread has ended */
	e2e_ready();
	plain_work();
	e2e_done();
	_exit(0);
}

static void seccomp_filter(void)
{
	static const int allowed[] = { SYS_read,  SYS_write,	    SYS_exit_group,
				       SYS_brk,	  SYS_mmap,	    SYS_munmap,
				       SYS_futex, SYS_rt_sigreturn, SYS_getrandom };
	enum { N = sizeof(allowed) / sizeof(allowed[0]) };
	struct sock_filter f[N + 3];
	struct sock_fprog prog = { N + 3, f };

	f[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					    offsetof(struct seccomp_data, nr));
	for (int i = 0; i < N; i++)
		f[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i],
							N - i, 0);
	f[N + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	f[N + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		led_die("hostile: no seccomp\n");
}

static void exec_storm(char **argv)
{
	const char *left = getenv("E2E_LEFT");
	int n = left ? (int)strtol(left, NULL, 10) : 60;
	char text[16];

	if (!left)
		e2e_ready();
	for (int i = 0; i < 20; i++)
		free(OPAQUE(malloc(1049)));
	if (n) {
		snprintf(text, sizeof(text), "%d", n - 1);
		setenv("E2E_LEFT", text, 1);
		execv("/proc/self/exe", argv);
		led_die("hostile: no exec\n");
	}
	usleep(1500000);
	plain_work();
	e2e_done();
}

static void *allocates(void *arg)
{
	void *kept[64] = { NULL };

	(void)arg;
	for (unsigned i = 0;; i++) {
		free(kept[i % 64]);
		kept[i % 64] = malloc(16 + i * 31 % 3000);
		if (i % 256 == 0)
			usleep(200);
	}
	return NULL;
}

static double pair_cost_ns(void)
{
	double best = 1e9;

	for (int round = 0; round < 60; round++) {
		struct timespec a, b;
		double ns;

		clock_gettime(CLOCK_MONOTONIC, &a);
		for (int i = 0; i < 300; i++)
			free(OPAQUE(malloc(64)));
		clock_gettime(CLOCK_MONOTONIC, &b);
		ns = ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / 300;
		if (ns < best)
			best = ns;
	}
	return best;
}

static void pace(void)
{
	pthread_t thread;
	char line[64];
	ssize_t n;

	pthread_create(&thread, NULL, allocates, NULL);
	e2e_ready();
	for (;;) {
		n = snprintf(line, sizeof(line), "COST %.1f\n", pair_cost_ns());
		e2e_say(line);
		alarm(900);
		n = read(0, line, sizeof(line));
		if (n <= 0 || !strncmp(line, "end", 3))
			_exit(0);
	}
}

int main(int argc, char **argv)
{
	const char *mode = getenv("E2E_MODE");
	pthread_t thread;

	(void)argc;
	if (!mode)
		led_die("hostile: E2E_MODE is not set\n");
	if (!strcmp(mode, "main-gone")) {
		pthread_create(&thread, NULL, survivor, NULL);
		pthread_exit(NULL);
	}
	if (!strcmp(mode, "exec-storm")) {
		exec_storm(argv);
		return 0;
	}
	if (!strcmp(mode, "pace"))
		pace();
	if (!strcmp(mode, "seccomp")) {
		led_name_thread(NULL);
		alarm(900);
		seccomp_filter();
		e2e_say("READY 0\n");
		e2e_wait_line();
		plain_work();
		e2e_done();
		return 0;
	}
	e2e_ready();
#ifdef OWN_ALLOCATOR
	if (!strcmp(mode, "longjmp")) {
		interrupted(jump_out, 0, 2003);
		plain_work();
	} else if (!strcmp(mode, "handler")) {
		run_handler(0);
	} else if (!strcmp(mode, "altstack")) {
		run_handler(SA_ONSTACK);
	} else if (!strcmp(mode, "thread-death")) {
		run_deaths();
	}
#else
	(void)back;
	(void)in_handler;
#endif
	e2e_done();
	return 0;
}
