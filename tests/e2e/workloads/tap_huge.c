/* SPDX-License-Identifier: MIT */
/*
 * tap_huge - a program that reserves 32 TiB at a time, which some allocators hand out, by the thousand: sums beyond 2^56 bytes.
 * Behind each, sizes that nobody gets. When told to "do" it; says ALLOCATED <bytes>.
 */
#include "tap_target.h"

#define HUGE_BYTES (1UL << 45)
#define HUGE_CNT 3001

static void reserve(void)
{
	volatile size_t half = 1UL << 63, most = SIZE_MAX;
	double sum = 0;

	for (int i = 0; i < HUGE_CNT; i++) {
		void *block = malloc(HUGE_BYTES);

		if (!block)
			bad("malloc");
		sum += (double)HUGE_BYTES;
		free(block);
		if (malloc(half) || malloc(most) || calloc(half, 3) || realloc(NULL, half))
			bad("it has what nobody can have");
		free(malloc(0));
	}
	say("ALLOCATED %.0f\n", sum);
}

int main(void)
{
	begin(allocate, (void *)1);
	be_ready();
	obey(reserve);
}
