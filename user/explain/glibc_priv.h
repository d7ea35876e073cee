/* SPDX-License-Identifier: MIT */
/* explain/glibc_priv.h - what the parts of explain/glibc share. File by file. */
#ifndef HT_EXPLAIN_GLIBC_PRIV_H
#define HT_EXPLAIN_GLIBC_PRIV_H

#include "explain/glibc.h"

/*
 * struct malloc_state. Versions differ in what stands before the bins, glibc.bins_off; the rest is as far from the bins in
 * all of them.
 */
#define ARENA_BINS_2_27 112 /* to 2.42 */
#define ARENA_BINS_2_43 24 /* there are no fastbins any more */
#define ARENA_BINS_2_26 104
#define ARENA_BYTES_CAP 2200

static inline uint64_t arena_fast(uint32_t bins_off)
{
	return bins_off - 96;
}

static inline uint64_t arena_top(uint32_t bins_off)
{
	return bins_off - 16;
}

static inline uint64_t arena_next(uint32_t bins_off)
{
	return bins_off + 2048;
}

static inline uint64_t arena_system_mem(uint32_t bins_off)
{
	return bins_off + 2072;
}

static inline uint64_t arena_max_system_mem(uint32_t bins_off)
{
	return bins_off + 2080;
}

static inline uint64_t arena_bytes(uint32_t bins_off)
{
	return bins_off + 2088;
}

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
