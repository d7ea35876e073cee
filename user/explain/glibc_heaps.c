/* SPDX-License-Identifier: MIT */
/* explain/glibc_heaps.c - the heaps of an arena: see explain/glibc.h. */
#include "explain/glibc_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define HEAPS_CAP 65536
/* struct heap_info */
#define INFO_ARENA 0
#define INFO_PREV 8
#define INFO_SIZE 16
#define INFO_BYTES 24

#define SAY(a, ...) snprintf((a)->why, sizeof((a)->why), __VA_ARGS__)

static int add_heap(struct glibc_arena *a, uint64_t addr, uint64_t first_chunk, uint64_t end)
{
	return vec_push(&a->heaps, (struct glibc_heap){
					   .addr = addr, .first_chunk = first_chunk, .end = end });
}

/* From the break's start to the end of the top, all of which the arena has counted. */
static int find_break(struct mappings *maps, const struct glibc *g, struct glibc_arena *a)
{
	uint64_t start = g->parameters.sbrk_base, end = a->top + a->top_bytes;
	struct mapping *map = mappings_find(maps, start);

	if (!g->parameters.is_known) {
		SAY(a, "the parameters of malloc were not found");
		return 0;
	}
	if (!map || !mapping_is_anonymous(map) || start > a->top) {
		SAY(a, "it is not one piece of memory from %#llx on", (unsigned long long)start);
		return 0;
	}
	if (end - start != a->system_bytes) {
		SAY(a, "it counts %llu bytes, but has %llu", (unsigned long long)a->system_bytes,
		    (unsigned long long)(end - start));
		return 0;
	}
	return add_heap(a, start, (start + 15) & ~15ULL, end);
}

/* From the heap with the top back to the one with the arena in it. */
static int find_list(struct memory *m, struct glibc_arena *a)
{
	uint64_t own = a->addr / GLIBC_HEAP_MAX * GLIBC_HEAP_MAX,
		 heap = a->top / GLIBC_HEAP_MAX * GLIBC_HEAP_MAX;
	uint64_t info[INFO_BYTES / 8], sum = 0, size;
	struct glibc_heap swap;
	int err;

	for (;; heap = info[INFO_PREV / 8]) {
		if (!heap || heap % GLIBC_HEAP_MAX || a->heaps.cnt >= HEAPS_CAP ||
		    memory_read(m, heap, info, sizeof(info)) || info[INFO_ARENA / 8] != a->addr) {
			SAY(a, "its list of heaps breaks at %#llx", (unsigned long long)heap);
			return 0;
		}
		size = info[INFO_SIZE / 8];
		if (!size || size > GLIBC_HEAP_MAX || size % MEMORY_PAGE) {
			SAY(a, "its heap %#llx has no valid size", (unsigned long long)heap);
			return 0;
		}
		sum += size;
		err = add_heap(a, heap,
			       heap == own ? (a->addr + ARENA_BYTES + 15) & ~15ULL :
					     heap + (a->addr - own),
			       heap + size);
		if (err || heap == own)
			break;
	}
	if (err)
		return err;
	swap = a->heaps.data[0];
	a->heaps.data[0] = a->heaps.data[a->heaps.cnt - 1];
	a->heaps.data[a->heaps.cnt - 1] = swap;
	if (sum != a->system_bytes)
		SAY(a, "it counts %llu bytes, but its heaps have %llu",
		    (unsigned long long)a->system_bytes, (unsigned long long)sum);
	else if (a->top + a->top_bytes != swap.end)
		SAY(a, "its top does not end where its heap does");
	return 0;
}

int glibc_find_heaps(struct memory *m, struct mappings *maps, const struct glibc *g,
		     struct glibc_arena *a)
{
	a->heaps.cnt = 0;
	if (a->top_bytes < CHUNK_MIN / 2 || a->top_bytes % 8) {
		SAY(a, "its top has no valid size");
		return 0;
	}
	return a->is_main ? find_break(maps, g, a) : find_list(m, a);
}

struct glibc_heap *glibc_heap_of(struct glibc_arena *a, uint64_t addr)
{
	struct glibc_heap *heap;

	vec_each(&a->heaps, heap)
		if (addr >= heap->first_chunk && addr < heap->end)
			return heap;
	return NULL;
}
