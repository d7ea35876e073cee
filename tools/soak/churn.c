/* SPDX-License-Identifier: MIT */
/*
 * churn.c - processes that come and go, for `make soak` and `make scale`.
 *
 *	churn PER_SECOND SECONDS LIBRARY
 *		a fork server: starts PER_SECOND programs each second, which live for 0.2 to 0.8 s. They
 *		are of four kinds in turn: plain, with threads, with scopes and tasks, and one that
 *		loads and unloads LIBRARY. At the end "STARTED n"
 *	churn reload LIBRARY
 *		until it is ended: loads and unloads LIBRARY 20 times a second, and each second a
 *		fresh copy of it
 *	churn steady PER_SECOND HELD
 *		"READY"; after SIGUSR1 it allocates HELD blocks, "HOLDING", and replaces PER_SECOND of
 *		them each second, or as many as it can; after SIGHUP a tenth of that. After SIGUSR2 it
 *		says how many it allocated, "DID n", and waits to be ended
 *
 * A program executes this file anew with its kind as the first argument, so that its name and its
 * mappings are its own.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "heaptap/scope.h"

#define NS_PER_S 1000000000ULL
#define HELD_CNT 512
#define TURNS_PER_S 20 /* of a steady process */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	const struct timespec t = { ns / NS_PER_S, ns % NS_PER_S };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Distinct stacks: the depth is the seed's. */
static __attribute__((noinline)) void *alloc_below(unsigned depth, size_t bytes)
{
	void *block = depth ? alloc_below(depth - 1, bytes) : malloc(bytes);

	__asm__ volatile("" : "+r"(block));
	return block;
}

/* Allocates and frees for so long; what is held at the end goes with the process. */
static void work(uint32_t seed, uint64_t until_ns)
{
	void *held[HELD_CNT] = { 0 };

	while (now_ns() < until_ns) {
		for (int i = 0; i < 200; i++) {
			uint32_t r = next(&seed);
			void **slot = &held[r % HELD_CNT];

			free(*slot);
			*slot = r & 0x1000 ? alloc_below((r >> 13) % 20, 16 + (r >> 4) % 4000) :
					     NULL;
		}
		usleep(10000);
	}
}

static uint64_t end_ns; /* of a program's life */

static void *thread_work(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "worker-%u", (unsigned)(uintptr_t)arg);
	pthread_setname_np(pthread_self(), name);
	work((uintptr_t)arg, end_ns);
	return NULL;
}

static void work_threads(void)
{
	pthread_t threads[4];

	for (uintptr_t i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, thread_work, (void *)(i + 1)))
			abort();
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void work_scopes(uint32_t seed)
{
	heaptap_node task = heaptap_task("Request");
	uint64_t number = 1;

	HEAPTAP_SCOPE("Server");
	while (now_ns() < end_ns) {
		heaptap_state before = heaptap_enter(task, number);
		{
			HEAPTAP_SCOPE("Query");
			work(seed + number, now_ns() + 20000000);
		}
		heaptap_leave(before);
		if (number % 2)
			heaptap_task_exit(task, number);
		number++;
	}
}

static void use_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*module_work)(int, size_t);

	if (!library) {
		fprintf(stderr, "churn: %s\n", dlerror());
		exit(1);
	}
	*(void **)&module_work = dlsym(library, "module_work");
	if (!module_work)
		exit(1);
	module_work(20, 300);
	dlclose(library);
}

static void work_library(const char *path)
{
	while (now_ns() < end_ns) {
		use_library(path);
		usleep(50000);
	}
}

static int run_program(const char *kind, const char *seed_text, const char *library)
{
	uint32_t seed = strtoul(seed_text, NULL, 10);

	end_ns = now_ns() + (200 + next(&seed) % 600) * 1000000ULL;
	if (!strcmp(kind, "program-threads"))
		work_threads();
	else if (!strcmp(kind, "program-scopes"))
		work_scopes(seed);
	else if (!strcmp(kind, "program-library"))
		work_library(library);
	else
		work(seed, end_ns);
	return 0;
}

static const char *const kinds[] = { "program-plain", "program-threads", "program-scopes",
				     "program-library" };

static int serve(int per_second, int seconds, const char *library)
{
	uint64_t due_ns = now_ns(), until_ns = due_ns + seconds * NS_PER_S;
	unsigned started_cnt = 0;

	while (due_ns < until_ns) {
		char seed[16];
		pid_t pid;

		sleep_until(due_ns);
		due_ns += NS_PER_S / per_second;
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		snprintf(seed, sizeof(seed), "%u", started_cnt % 1000);
		pid = vfork();
		if (!pid) {
			execl("/proc/self/exe", "churn", kinds[started_cnt % 4], seed, library,
			      NULL);
			_exit(127);
		}
		started_cnt += pid > 0;
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	printf("STARTED %u\n", started_cnt);
	return 0;
}

static int copy_file(const char *from_path, const char *to_path)
{
	int from = open(from_path, O_RDONLY | O_CLOEXEC), to;
	struct stat st;
	ssize_t n = -1;

	if (from < 0 || fstat(from, &st))
		return -1;
	to = open(to_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	if (to >= 0) {
		n = sendfile(to, from, NULL, st.st_size);
		close(to);
	}
	close(from);
	return n == st.st_size ? 0 : -1;
}

static int reload(const char *library)
{
	char path[64];

	for (unsigned i = 0;; i++) {
		use_library(library);
		usleep(50000);
		if (i % 20)
			continue;
		snprintf(path, sizeof(path), "/tmp/heaptap-soak-%d-%u.so", getpid(), i);
		if (copy_file(library, path))
			return 1;
		use_library(path);
		unlink(path);
	}
}

static volatile sig_atomic_t is_told, is_slowed;

static void on_signal(int signum)
{
	if (signum == SIGHUP)
		is_slowed = 1;
	else
		is_told = signum;
}

/* Without a look now and then: some hundred processes that did so would keep a CPU busy. */
static void wait_for(int signum)
{
	sigset_t told, before;

	sigemptyset(&told);
	sigaddset(&told, signum);
	sigprocmask(SIG_BLOCK, &told, &before);
	while (is_told != signum)
		sigsuspend(&before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static int steady(int per_second, size_t held_cnt)
{
	void **held = calloc(held_cnt, sizeof(*held));
	uint64_t due_ns, did_cnt = held_cnt;
	uint32_t seed = getpid();
	double owed = 0;

	if (!held || !held_cnt)
		return 1;
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	signal(SIGHUP, on_signal);
	setvbuf(stdout, NULL, _IONBF, 0);
	printf("READY\n");
	wait_for(SIGUSR1);
	for (size_t i = 0; i < held_cnt; i++)
		held[i] = alloc_below(next(&seed) % 20, 256);
	printf("HOLDING\n");
	due_ns = now_ns();
	while (is_told != SIGUSR2) {
		owed += is_slowed ? per_second / 10.0 / TURNS_PER_S :
				    (double)per_second / TURNS_PER_S;
		sleep_until(due_ns);
		for (; owed >= 1; owed--, did_cnt++) {
			size_t at = next(&seed) % held_cnt;

			free(held[at]);
			held[at] = alloc_below(next(&seed) % 20, 256);
		}
		/* What could not be done in time is not made up for. */
		due_ns = now_ns() > due_ns + NS_PER_S / TURNS_PER_S ?
				 now_ns() :
				 due_ns + NS_PER_S / TURNS_PER_S;
	}
	printf("DID %llu\n", (unsigned long long)did_cnt);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc == 4 && !strncmp(argv[1], "program-", 8))
		return run_program(argv[1], argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "reload"))
		return reload(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "steady"))
		return steady(atoi(argv[2]), strtoul(argv[3], NULL, 10));
	if (argc == 4)
		return serve(atoi(argv[1]), atoi(argv[2]), argv[3]);
	fprintf(stderr, "usage: churn PER_SECOND SECONDS LIBRARY | reload LIBRARY | steady "
			"PER_SECOND HELD\n");
	return 2;
}
