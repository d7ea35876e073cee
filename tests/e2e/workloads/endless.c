/* SPDX-License-Identifier: MIT */
/*
 * endless - processes without end, from "go" on, until it is killed.
 *
 *	endless exec	executes itself again and again
 *	endless fork	forks; each child allocates and lives for a second, up to 400 at once
 *
 * Each allocates before it does so.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 400

static void *volatile kept;

static void allocate(void)
{
	for (int i = 0; i < 10; i++)
		kept = malloc(100);
}

static void fork_again(int *running)
{
	pid_t pid;

	if (*running == CHILDREN) {
		wait(NULL);
		--*running;
	}
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		allocate();
		sleep(1);
		_exit(0);
	}
	*running += pid > 0;
}

int main(int argc, char **argv)
{
	char again[] = "again", *args[] = { argv[0], again, NULL }, line[64];
	int running = 0;

	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "again")) {
		puts("READY");
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin) || strcmp(line, "go\n"))
			return 0;
	}
	allocate();
	while (!strcmp(argv[1], "fork"))
		fork_again(&running);
	execv("/proc/self/exe", args);
	return 1;
}
