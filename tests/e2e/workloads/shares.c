/* SPDX-License-Identifier: MIT */
/*
 * shares.c - one memory, several processes: a child allocates in its parent's memory and frees the parent's blocks, the parent
 * frees the child's, and a third of the blocks stay. Only one of the two runs at a time, because they share the thread's
 * variables as well. E2E_MODE=vfork: children of vfork(); the last executes this program as =program, the others end. =clone: a
 * child of clone(CLONE_VM), which is the first to allocate. =early: the same, but it began before READY. =fork: beside them
 * ordinary children, which allocate in a copy of the memory. E2E_CHILD_MS: how long a child lives at least.
 */
#include <sched.h>
#include <sys/wait.h>

#include "ledger.h"

#define ROUND_CNT 7
#define BLOCK_CNT 211
#define STACK_BYTES (256 << 10)

static void *blocks[2 * BLOCK_CNT];
static volatile int turn; /* of the early child: 1; of its parent again: 2 */
static useconds_t child_us;

SITE void *site_parent(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

SITE void *site_child(size_t size)
{
	return led_alloc(__func__, malloc(size), size);
}

static void fill(void *(*site)(size_t), size_t first, size_t size)
{
	for (size_t i = first; i < BLOCK_CNT * 2; i += 2)
		blocks[i] = site(size + i % 7);
}

/* Two thirds of them. */
static void drop(size_t first)
{
	for (size_t i = first, n = 0; i < BLOCK_CNT * 2; i += 2, n++)
		if (n % 3)
			free(led_free(blocks[i]));
}

static char *const program_environment[] = { "E2E_MODE=program", NULL };

/* It is given the time to be found. */
static int run_program(void)
{
	for (int i = 0; i < 100; i++) {
		usleep(10000);
		site_parent(907);
	}
	return 0;
}

static int child_work(void *arg)
{
	(void)arg;
	fill(site_child, 1, 1009);
	drop(0);
	usleep(child_us);
	return 0;
}

static int early_work(void *arg)
{
	while (turn != 1)
		usleep(1000);
	child_work(arg);
	turn = 2;
	return 0;
}

static void run_vfork(int round)
{
	pid_t pid = vfork();

	if (!pid) {
		child_work(NULL);
		if (round == ROUND_CNT - 1)
			execle("/proc/self/exe", "exe", (char *)NULL, program_environment);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static pid_t begin_clone(int (*work)(void *))
{
	static char stack[STACK_BYTES] __attribute__((aligned(64)));

	return clone(work, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
}

static void run_fork(void)
{
	pid_t pid = fork();

	if (!pid) {
		for (int i = 0; i < 3 * BLOCK_CNT; i++)
			free(OPAQUE(malloc(503)));
		drop(0);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const char *mode = getenv("E2E_MODE"), *ms = getenv("E2E_CHILD_MS");
	bool is_early = mode && !strcmp(mode, "early"), is_vfork = mode && !strcmp(mode, "vfork");
	bool forks = mode && !strcmp(mode, "fork");
	pid_t early;

	if (mode && !strcmp(mode, "program"))
		return run_program();
	early = is_early ? begin_clone(early_work) : 0;
	child_us = (ms ? (useconds_t)atoi(ms) : 20) * 1000;
	e2e_ready();
	for (int round = 0; round < (is_early ? 1 : ROUND_CNT); round++) {
		if (!is_early && (round || is_vfork))
			fill(site_parent, 0, 907);
		if (forks)
			run_fork();
		if (is_early)
			for (turn = 1; turn != 2;)
				usleep(1000);
		else if (is_vfork)
			run_vfork(round);
		else
			waitpid(begin_clone(child_work), NULL, 0);
		drop(1);
		memset(blocks, 0, sizeof(blocks));
	}
	if (early)
		waitpid(early, NULL, 0);
	e2e_done();
	return 0;
}
