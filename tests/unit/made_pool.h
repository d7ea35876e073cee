/* SPDX-License-Identifier: MIT */
/* made_pool.h - a pool of CPython's pymalloc, and the memory in which it is. */
#ifndef HT_MADE_POOL_H
#define HT_MADE_POOL_H

#include <stdint.h>
#include <string.h>

#include "explain/rows.h"

#define POOLS_ADDR 0x7f0000500000ULL /* a multiple of 16 KiB */
#define POOLS_BYTES 32768
#define POOL_WORDS 2048 /* of 16 KiB */

static int read_pools(void *ctx, uint64_t addr, void *buf, size_t bytes)
{
	memcpy(buf, (const char *)ctx + (addr - POOLS_ADDR), bytes);
	return 0;
}

static enum page_state pool_page(void *ctx, uint64_t addr)
{
	return PAGE_RESIDENT;
}

static void no_pool_refresh(void *ctx, uint64_t addr, size_t bytes)
{
}

/* words: POOLS_BYTES of them, at POOLS_ADDR. */
static inline struct memory pool_memory(uint64_t *words)
{
	return (struct memory){ .read = read_pools,
				.ctx = words,
				.page = pool_page,
				.refresh = no_pool_refresh,
				.deadline_ns = UINT64_MAX };
}

/* Blocks of 48 bytes: 100 were used, and 3 of them are free now. */
static inline void make_pool(uint64_t *words, uint64_t addr)
{
	memset(words, 0, POOL_WORDS * sizeof(*words));
	words[0] = 97;
	words[1] = addr + 48 + 7 * 48;
	words[2] = words[3] = 0x7f0000a00000;
	words[4] = 5 | 2ULL << 32; /* arena, size class */
	words[5] = (48 + 100 * 48) | (16384ULL - 48) << 32;
	words[(48 + 7 * 48) / 8] = addr + 48 + 99 * 48;
	words[(48 + 99 * 48) / 8] = addr + 48;
}

#endif
