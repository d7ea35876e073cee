/* SPDX-License-Identifier: MIT */
/*
 * huge.c - allocates blocks of 32 TiB and frees them, so that the sum goes beyond what 64 bits of bytes hold. It touches none
 * of them: its allocator must take address space without a reserve, as jemalloc does. Requests that can only fail are among
 * them. E2E_BLOCKS=N: so many blocks.
 */
#include "ledger.h"

#define BLOCK_BYTES ((size_t)1 << 45)
#define LARGEST_BYTES ((size_t)65 << 40)

SITE void *site_huge(void)
{
	return malloc(OPAQUE(BLOCK_BYTES));
}

/* more than half of the address space */
SITE void *site_largest(void)
{
	return malloc(OPAQUE(LARGEST_BYTES));
}

SITE void *site_impossible(void)
{
	return OPAQUE(malloc(OPAQUE(SIZE_MAX / 2 + 1)));
}

int main(void)
{
	const char *cnt = getenv("E2E_BLOCKS");
	unsigned long allocated_cnt = 0, largest_cnt = 0;

	e2e_ready();
	for (long i = cnt ? atol(cnt) : 1; i > 0; i--) {
		void *p = site_huge();

		allocated_cnt += p != NULL;
		free(OPAQUE(p));
		if (i % 1000)
			continue;
		free(site_impossible());
		p = site_largest();
		largest_cnt += p != NULL;
		free(OPAQUE(p));
	}
	printf("ALLOCATED %.0f\n", (double)allocated_cnt * (double)BLOCK_BYTES +
					   (double)largest_cnt * (double)LARGEST_BYTES);
	printf("LARGEST %lu\n", largest_cnt);
	e2e_done();
	return 0;
}
