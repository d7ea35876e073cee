/* SPDX-License-Identifier: MIT */
/* explain/glibc_priv.h - what the parts of explain/glibc share. File by file. */
#ifndef HT_EXPLAIN_GLIBC_PRIV_H
#define HT_EXPLAIN_GLIBC_PRIV_H

#include "explain/glibc.h"

/* struct malloc_state, 2.27 to 2.42 */
#define ARENA_FAST 16
#define ARENA_TOP 96
#define ARENA_BINS 112
#define ARENA_NEXT 2160
#define ARENA_SYSTEM_MEM 2184
#define ARENA_MAX_SYSTEM_MEM 2192
#define ARENA_BYTES 2200

#define GLIBC_HEAP_MAX (64ULL << 20)

#define CHUNK_MIN 32
#define CHUNK_PREV_IN_USE 1ULL
#define CHUNK_MMAPPED 2ULL
#define CHUNK_NOT_MAIN 4ULL
#define CHUNK_FLAGS 7ULL

/* The value at a multiple of 8. */
static inline uint64_t word_at(const void *bytes, size_t off)
{
	return *(const uint64_t *)((const char *)bytes + off);
}

/* glibc_mmapped.c */
void glibc_walk_mmapped(struct memory *m, struct mappings *maps, struct glibc *g);

#endif
