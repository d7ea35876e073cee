/* SPDX-License-Identifier: MIT */
/*
 * many_stacks - takes all that it can of the tables of a profiler: each allocation has a stack of its own,
 * 2^20 of them, and stays. After "go" that many, then DONE. Ends with its input.
 *
 *	many_stacks CNT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 20

static void *below(unsigned path, int depth);

static __attribute__((noinline)) void *left(unsigned path, int depth)
{
	void *p = below(path, depth);

	__asm__ volatile("" : "+r"(p));
	return p;
}

static __attribute__((noinline)) void *right(unsigned path, int depth)
{
	void *p = below(path, depth);

	__asm__ volatile("" : "+r"(p));
	return p;
}

static void *below(unsigned path, int depth)
{
	if (!depth)
		return malloc(100);
	return path & 1 ? left(path >> 1, depth - 1) : right(path >> 1, depth - 1);
}

static void *volatile kept;

int main(int argc, char **argv)
{
	unsigned cnt = argc > 1 ? (unsigned)atol(argv[1]) : 1u << DEPTH;
	char line[64];

	puts("READY");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "go\n"))
			continue;
		for (unsigned i = 0; i < cnt; i++)
			kept = below(i, DEPTH);
		puts("DONE");
		fflush(stdout);
	}
	return 0;
}
