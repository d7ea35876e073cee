/* SPDX-License-Identifier: MIT */
/*
 * timed.c - `timed FILE CPU CMD ARGS...` pins itself to a CPU, replaces itself by CMD, and writes
 * to FILE how many seconds passed until that process ended.
 *
 * A profiler that starts the program itself is thereby not charged for what it does before and
 * after the program's life. BENCH_PRELOAD becomes CMD's LD_PRELOAD, so that a preloaded profiler is
 * started once, in CMD. A child that sleeps on a pidfd takes the time; the process that is
 * profiled is CMD itself, with no parent in between.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static void watch(int pidfd, double start_s, FILE *out)
{
	struct pollfd pfd = { .fd = pidfd, .events = POLLIN };

	while (poll(&pfd, 1, -1) < 0 && errno == EINTR)
		;
	fprintf(out, "%.6f\n", now_s() - start_s);
	fclose(out);
	_exit(0);
}

int main(int argc, char **argv)
{
	double start_s;
	cpu_set_t cpus;
	FILE *out;
	int pidfd;

	if (argc < 4) {
		fprintf(stderr, "usage: timed FILE CPU CMD ARGS...\n");
		return 2;
	}
	out = fopen(argv[1], "we");
	pidfd = syscall(SYS_pidfd_open, getpid(), 0);
	if (!out || pidfd < 0) {
		fprintf(stderr, "timed: '%s': %s\n", argv[1], strerror(errno));
		return 2;
	}
	CPU_ZERO(&cpus);
	CPU_SET(strtol(argv[2], NULL, 10), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		fprintf(stderr, "timed: cannot pin to CPU %s: %s\n", argv[2], strerror(errno));
	start_s = now_s();
	switch (fork()) {
	case -1:
		fprintf(stderr, "timed: fork: %s\n", strerror(errno));
		return 2;
	case 0:
		/* A pipe of the caller must not stay open because of the watcher. */
		close(STDIN_FILENO);
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		watch(pidfd, start_s, out);
	}
	close(pidfd);
	if (getenv("BENCH_PRELOAD"))
		setenv("LD_PRELOAD", getenv("BENCH_PRELOAD"), 1);
	execvp(argv[3], &argv[3]);
	fprintf(stderr, "timed: '%s': %s\n", argv[3], strerror(errno));
	return 127;
}
