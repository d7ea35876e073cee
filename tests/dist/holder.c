/* SPDX-License-Identifier: MIT */
/*
 * holder.c - holds 1000 blocks of 1009 bytes, a tenth of them at a time, and tags them. Ends by itself; with an
 * argument it goes on for so many seconds first, a block each millisecond.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <heaptap/scope.h>

#define BLOCKS 1000
#define BYTES 1009

static void *kept[BLOCKS];

__attribute__((noinline)) void site_of_holder(int i)
{
	HEAPTAP_SCOPE("Holder");
	free(kept[i]);
	kept[i] = malloc(BYTES);
	if (kept[i])
		memset(kept[i], 1, BYTES);
}

int main(int argc, char **argv)
{
	int more = argc > 1 ? atoi(argv[1]) * 1000 : 0;

	for (int i = 0; i < BLOCKS + more; i++) {
		struct timespec pause = { .tv_nsec = 1000000 };

		site_of_holder(i % BLOCKS);
		if (more)
			nanosleep(&pause, NULL);
	}
	return 0;
}
