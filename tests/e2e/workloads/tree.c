/* SPDX-License-Identifier: MIT */
/*
 * tree.c - processes that each allocate a block every few milliseconds and keep it: itself, so many
 * children and one grandchild of each, there when it says READY with a line "PID <pid>" for each. After
 * "go" it forks E2E_MORE more, one every E2E_MORE_US, and says DONE. All end with it.
 *
 *	tree NAME CHILDREN
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int told_fd[2];

__attribute__((noinline)) void *site_tree(size_t size)
{
	void *p = malloc(size);

	__asm__ volatile("" : "+r"(p));
	return p;
}

static void tell_pid(void)
{
	char line[32];
	int len = snprintf(line, sizeof(line), "PID %d\n", getpid());

	if (write(told_fd[1], line, len) != len)
		_exit(3);
}

static void *work(void *arg)
{
	(void)arg;
	for (;;) {
		*(volatile char *)site_tree(1000) = 1;
		usleep(5000);
	}
	return NULL;
}

static void begin(const char *name)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
	tell_pid();
}

static void child_main(const char *name, int has_child)
{
	if (has_child && !fork()) {
		begin(name);
		work(NULL);
	}
	begin(name);
	work(NULL);
}

static int number(const char *name)
{
	return getenv(name) ? atoi(getenv(name)) : 0;
}

int main(int argc, char **argv)
{
	int child_cnt = argc > 2 ? atoi(argv[2]) : 0, more = number("E2E_MORE");
	char line[64];
	pthread_t thread;
	FILE *told;

	if (argc < 2 || pipe(told_fd))
		return 2;
	prctl(PR_SET_NAME, argv[1]);
	tell_pid();
	for (int i = 0; i < child_cnt; i++)
		if (!fork())
			child_main(argv[1], 1);
	told = fdopen(told_fd[0], "r");
	for (int i = 0; i < 1 + 2 * child_cnt; i++)
		if (fgets(line, sizeof(line), told))
			fputs(line, stdout);
	puts("READY");
	fflush(stdout);
	/* the thread has the process's name */
	pthread_create(&thread, NULL, work, NULL);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (int i = 0; i < more; i++) {
		if (!fork())
			child_main(argv[1], 0);
		usleep(number("E2E_MORE_US"));
	}
	for (int i = 0; i < more; i++)
		if (fgets(line, sizeof(line), told))
			fputs(line, stdout);
	puts("DONE");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		if (!strncmp(line, "end", 3))
			return 0;
	return 0;
}
