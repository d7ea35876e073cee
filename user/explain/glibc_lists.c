/* SPDX-License-Identifier: MIT */
/*
 * explain/glibc_lists.c - the lists of free chunks: bins, fastbins, the caches of threads.
 *
 * A list that a thread changes while it is followed may lead round and round, or anywhere. So each step is checked, and
 * the number of steps has a bound.
 */
#include "explain/glibc_priv.h"

#include <errno.h>
#include <stdlib.h>

#define BINS_CAP \
	(1u      \
	 << 18) /* chunks in all of an arena's: they are anywhere in it, so each costs a reading */
#define KEY_CHUNKS 16 /* of a heap's first ones, which may be a cache */
#define KEY_CNT 8 /* different ones that are remembered */

/* false: the list breaks, or is too long. */
static bool read_bin(struct memory *m, struct glibc_arena *a, uint64_t bin, uint64_t *left)
{
	uint64_t previous = bin, at, next, back, head;

	if (!memory_word(m, bin + 16, &at))
		return false;
	while (at != bin) {
		if (!*left || !glibc_heap_of(a, at) || !memory_word(m, at + 8, &head) ||
		    !memory_word(m, at + 16, &next) || !memory_word(m, at + 24, &back) ||
		    back != previous)
			return false;
		(*left)--;
		a->bin_cnt++;
		a->bin_bytes += head & ~CHUNK_FLAGS;
		previous = at;
		at = next;
	}
	return true;
}

void glibc_read_bins(struct memory *m, struct glibc_arena *a)
{
	uint64_t left = a->system_bytes / CHUNK_MIN;

	left = left < BINS_CAP ? left : BINS_CAP;
	a->bins_are_read = true;
	for (uint32_t i = 0; i < GLIBC_BIN_CNT; i++)
		if (!read_bin(m, a, a->addr + ARENA_BINS + 16ULL * i - 16, &left))
			a->bins_are_read = false;
}

/* The heap of a chunk of a fastbin, or NULL: it is none. */
static struct glibc_heap *fast_chunk(struct memory *m, struct glibc_arena *a, uint64_t at,
				     uint64_t bytes)
{
	struct glibc_heap *heap = at % 16 ? NULL : glibc_heap_of(a, at);
	uint64_t head;

	return heap && memory_word(m, at + 8, &head) && (head & ~CHUNK_FLAGS) == bytes ? heap :
											 NULL;
}

/* From 2.32 on a pointer is mixed with the place where it is. What leads on decides. */
static struct glibc_heap *next_fast(struct memory *m, struct glibc_arena *a, uint64_t bytes,
				    uint64_t *at)
{
	uint64_t raw, next;
	struct glibc_heap *heap;

	if (!memory_word(m, *at + 16, &raw))
		return NULL;
	next = (*at + 16) >> 12 ^ raw;
	heap = next ? fast_chunk(m, a, next, bytes) : NULL;
	if (!heap && next && raw) {
		next = raw;
		heap = fast_chunk(m, a, next, bytes);
	}
	*at = next;
	return heap;
}

static int mark_fast(struct glibc_heap *heap, uint64_t at, bool *ret_is_new)
{
	uint64_t bit = (at - page_down(heap->addr)) / 16;

	if (!heap->fast)
		heap->fast = calloc((heap->end - page_down(heap->addr)) / 16 / 64 + 1, 8);
	if (!heap->fast)
		return -ENOMEM;
	*ret_is_new = !(heap->fast[bit / 64] >> bit % 64 & 1);
	heap->fast[bit / 64] |= 1ULL << bit % 64;
	return 0;
}

int glibc_read_fast(struct memory *m, struct glibc_arena *a)
{
	for (uint64_t i = 0; i < GLIBC_FAST_CNT; i++) {
		const uint64_t bytes = CHUNK_MIN + 16 * i;
		struct glibc_heap *heap;
		bool is_new = true;
		uint64_t at;

		if (!memory_word(m, a->addr + ARENA_FAST + 8 * i, &at) || !at)
			continue;
		heap = fast_chunk(m, a, at, bytes);
		/* a list that leads to a chunk for the second time is moving */
		while (heap) {
			if (mark_fast(heap, at, &is_new))
				return -ENOMEM;
			if (!is_new)
				break;
			a->fast_cnt++;
			a->fast_bytes += bytes;
			heap = next_fast(m, a, bytes, &at);
		}
	}
	return 0;
}

/* tcache_perthread_struct of 2.30 to 2.41; a chunk may be 16 bytes larger than is necessary. */
bool glibc_is_cache(const struct glibc *g, const uint64_t *words, uint64_t chunk_bytes,
		    uint64_t *ret_cnt, uint64_t *ret_entry)
{
	const uint64_t cap = g->parameters.is_known ? g->parameters.cache_cap : 7;
	const uint16_t *cnts = (const uint16_t *)words;

	if (chunk_bytes != 0x290 && chunk_bytes != 0x2a0)
		return false;
	*ret_cnt = *ret_entry = 0;
	for (size_t i = 0; i < 64; i++) {
		uint64_t entry = words[16 + i];

		if (cnts[i] > cap || !cnts[i] != !entry || entry % 16 || entry >= MEMORY_END)
			return false;
		*ret_cnt += cnts[i];
		if (entry)
			*ret_entry = entry;
	}
	return true;
}

/* The word behind a cached block's first is the key. */
static void vote(struct memory *m, const uint64_t *words, uint64_t keys[KEY_CNT],
		 uint32_t votes[KEY_CNT])
{
	for (size_t i = 0; i < 64; i++) {
		uint64_t key;
		size_t k = 0;

		if (!words[16 + i] || !memory_word(m, words[16 + i] + 8, &key) || !key)
			continue;
		while (k < KEY_CNT && votes[k] && keys[k] != key)
			k++;
		if (k < KEY_CNT) {
			keys[k] = key;
			votes[k]++;
		}
	}
}

static void look_for_caches(struct memory *m, const struct glibc *g, const struct glibc_heap *heap,
			    uint64_t keys[KEY_CNT], uint32_t votes[KEY_CNT])
{
	uint64_t at = heap->first_chunk, head, words[CACHE_WORDS], cnt, entry;

	for (int i = 0; i < KEY_CHUNKS && memory_word(m, at + 8, &head); i++) {
		uint64_t bytes = head & ~CHUNK_FLAGS;

		if (bytes < CHUNK_MIN || bytes % 16 || bytes >= heap->end - at)
			return;
		if ((bytes == 0x290 || bytes == 0x2a0) &&
		    !memory_read(m, at + 16, words, sizeof(words)) &&
		    glibc_is_cache(g, words, bytes, &cnt, &entry))
			vote(m, words, keys, votes);
		at += bytes;
	}
}

void glibc_learn_key(struct memory *m, struct glibc *g)
{
	uint64_t keys[KEY_CNT] = { 0 };
	uint32_t votes[KEY_CNT] = { 0 }, all = 0, best = 0;
	struct glibc_arena *a;
	struct glibc_heap *heap;

	vec_each(&g->arenas, a)
		vec_each(&a->heaps, heap)
			if (heap == a->heaps.data)
				look_for_caches(m, g, heap, keys, votes);
	for (uint32_t i = 0; i < KEY_CNT; i++) {
		all += votes[i];
		if (votes[i] > votes[best])
			best = i;
	}
	if (votes[best] * 2 > all)
		g->cache_key = keys[best];
}
