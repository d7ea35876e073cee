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

/* glibc_heaps.c */
/* Fill heaps of an arena, or say in why that they are not as they should be. -ENOMEM. */
int glibc_find_heaps(struct memory *m, struct mappings *maps, const struct glibc *g,
		     struct glibc_arena *a);
struct glibc_heap *glibc_heap_of(struct glibc_arena *a, uint64_t addr);

/* glibc_lists.c */
/* Count the chunks in bins. */
void glibc_read_bins(struct memory *m, struct glibc_arena *a);
/* Mark the chunks in fastbins. -ENOMEM. */
int glibc_read_fast(struct memory *m, struct glibc_arena *a);
/* Learn the key from the caches at the beginning of the heaps. */
void glibc_learn_key(struct memory *m, struct glibc *g);
/* Is it the cache of a thread? words: what is in a chunk of chunk_bytes. *ret_cnt: blocks in it; *ret_entry: one, 0: none. */
bool glibc_is_cache(const struct glibc *g, const uint64_t *words, uint64_t chunk_bytes,
		    uint64_t *ret_cnt, uint64_t *ret_entry);
#define CACHE_WORDS 80 /* 64 counts of 2 bytes, 64 pointers */

/* glibc_mmapped.c */
void glibc_walk_mmapped(struct memory *m, struct mappings *maps, struct glibc *g);

#endif
