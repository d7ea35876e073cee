/* SPDX-License-Identifier: MIT */
/*
 * scopeloop.c - the target of the scope benchmark: malloc+free pairs under scopes, on command.
 *
 * There is a copy of it without the note by which a reader finds its scopes: the same code, the
 * same frames, and the difference of the two is what reading scopes costs. One answer line on stdout for each command on stdin:
 *   run WHAT PAIRS    -> CPU ns per pair. WHAT: none, tag (depth 1), deep (depth 4), task
 */
#include <heaptap/scope.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static __attribute__((noinline)) double pairs_ns(long pairs)
{
	double begin = cpu_ns();

	for (long i = 0; i < pairs; i++) {
		char *p = malloc(64);

		__asm__ volatile("" : "+r"(p) : : "memory");
		free(p);
	}
	return (cpu_ns() - begin) / pairs;
}

/* Not a tail call: the stack must be as deep without scopes as with them. */
static __attribute__((noinline)) double below(long pairs)
{
	double ns = pairs_ns(pairs);

	__asm__ volatile("" : "+m"(ns));
	return ns;
}

static double run(const char *what, long pairs)
{
	double ns;

	if (!strcmp(what, "tag")) {
		HEAPTAP_SCOPE("Top");
		ns = below(pairs);
	} else if (!strcmp(what, "deep")) {
		HEAPTAP_SCOPE("Top", "A", "B", "C");
		ns = below(pairs);
	} else if (!strcmp(what, "task")) {
		HEAPTAP_TASK("query", 17);
		ns = below(pairs);
	} else {
		ns = below(pairs);
	}
	__asm__ volatile("" : "+m"(ns));
	return ns;
}

int main(void)
{
	char line[128], what[16];
	long pairs;

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "run %15s %ld", what, &pairs) == 2 && pairs > 0)
			printf("%.2f\n", run(what, pairs));
		else
			puts("error: run WHAT PAIRS");
	}
	return 0;
}
