/* SPDX-License-Identifier: MIT */
/*
 * leaves - ends with so much memory that it has not freed: for limits.
 *
 *	leaves BYTES [STATUS [SECONDS]]
 *
 * Allocates and frees some, then allocates BYTES in left_site(), in blocks of 1000 bytes and the rest, waits, and exits
 * with STATUS. Nothing else allocates: no stdio.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *volatile kept;

static __attribute__((noinline)) void left_site(size_t bytes)
{
	kept = malloc(bytes);
	if (kept)
		memset(kept, 1, bytes);
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;

	for (int i = 0; i < 1000; i++) {
		kept = malloc(500);
		free(kept);
	}
	for (; bytes >= 1000; bytes -= 1000)
		left_site(1000);
	if (bytes)
		left_site(bytes);
	if (argc > 3)
		sleep((unsigned)atoi(argv[3]));
	return argc > 2 ? atoi(argv[2]) : 0;
}
