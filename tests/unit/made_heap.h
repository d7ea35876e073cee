/* SPDX-License-Identifier: MIT */
/* made_heap.h - a process's memory as glibc's malloc would leave it: one main arena, built chunk by chunk. */
#ifndef TEST_MADE_HEAP_H
#define TEST_MADE_HEAP_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "explain/glibc.h"
#include "made_class.h"

#define MADE_DATA 0x7f0000000000ULL /* the C library's .data: arena and parameters */
#define MADE_ARENA (MADE_DATA + 0xc60)
#define MADE_PARAMETERS (MADE_DATA + 0x2000)
#define MADE_DATA_BYTES 0x4000
#define MADE_CLASS (MADE_DATA + 0x3000) /* a C++ class: see made_class() */
#define MADE_VTABLE (MADE_CLASS + 16)
#define MADE_CODE (MADE_DATA + MADE_DATA_BYTES)
#define MADE_HEAP 0x555500000000ULL
#define MADE_HEAP_BYTES (1u << 20)
#define MADE_KEY 0x1234567890abcdefULL

/* What differs between versions. The bins are always where 2.36 has them: the arena begins elsewhere. */
struct made_version {
	const char *name;
	uint32_t bins_off;
	bool has_fast;
	uint32_t cache_bytes, cache_entries_off,
		cache_cap; /* of a thread's cache: its chunk, its lists */
	bool cache_counts_room; /* not blocks */
	bool key_is_cache; /* its address */
	uint32_t n_mmaps_max_off, sbrk_base_off, cache_bins_off,
		cache_cap_off; /* in the parameters */
};
static const struct made_version made_2_36 = { "2.36", 112,   true, 0x290, 128, 7,
					       false,  false, 64,   96,	   104, 120 };
static const struct made_version made_2_31 = { "2.31", 112,  true, 0x290, 128, 7,
					       false,  true, 44,   72,	  80,  96 };
static const struct made_version made_2_43 = { "2.43", 24,    false, 0x300, 152, 16,
					       true,   false, 72,    104,   112, 128 };

struct made_heap {
	struct memory memory;
	const struct made_version *version;
	struct mappings maps;
	struct mapping map_list[3];
	struct types *types; /* of the last walk */
	struct resident_pins *pins; /* of the next one; NULL: none */
	char *data, *heap;
	uint64_t at; /* where the next chunk comes */
	bool last_is_free;
	uint64_t last_free; /* in the unsorted bin */
	uint64_t cache; /* the thread's cache; 0: none */
	uint64_t absent_addr; /* a page that is not there; 0: none */
	uint64_t read_cnt, look_cnt; /* calls of read() and page() */
	void (*on_read)(struct made_heap *h); /* NULL, or changes something */
};

static uint64_t *made_word(struct made_heap *h, uint64_t addr)
{
	return (uint64_t *)(addr >= MADE_DATA ? h->data + (addr - MADE_DATA) :
						h->heap + (addr - MADE_HEAP));
}

static bool made_is_mapped(uint64_t addr, size_t bytes)
{
	return (addr >= MADE_DATA && addr + bytes <= MADE_DATA + MADE_DATA_BYTES) ||
	       (addr >= MADE_HEAP && addr + bytes <= MADE_HEAP + MADE_HEAP_BYTES);
}

static int made_read(void *ctx, uint64_t addr, void *buf, size_t bytes)
{
	struct made_heap *h = ctx;

	h->read_cnt++;
	if (h->on_read)
		h->on_read(h);
	if (!made_is_mapped(addr, bytes))
		return -EFAULT;
	memcpy(buf, made_word(h, addr), bytes);
	return 0;
}

static enum page_state made_page(void *ctx, uint64_t addr)
{
	struct made_heap *h = ctx;

	h->look_cnt++;
	addr = page_down(addr);
	return addr == h->absent_addr || !made_is_mapped(addr, MEMORY_PAGE) ? PAGE_ABSENT :
									      PAGE_RESIDENT;
}

static void made_refresh(void *ctx, uint64_t addr, size_t bytes)
{
}

static uint64_t made_bin(uint32_t bin)
{
	return MADE_ARENA + 112 + 16ULL * bin - 16;
}

static uint64_t made_arena(const struct made_heap *h)
{
	return MADE_ARENA + made_2_36.bins_off - h->version->bins_off;
}

static void made_init_as(struct made_heap *h, const struct made_version *version)
{
	*h = (struct made_heap){ .at = MADE_HEAP, .version = version };
	h->data = calloc(1, MADE_DATA_BYTES);
	h->heap = calloc(1, MADE_HEAP_BYTES);
	h->memory = (struct memory){ .read = made_read,
				     .page = made_page,
				     .refresh = made_refresh,
				     .ctx = h,
				     .deadline_ns = now_ns() + 60 * NS_PER_S };
	if (!h->data || !h->heap || memory_init(&h->memory))
		abort();
	h->map_list[0] = (struct mapping){
		.map = { .start_addr = MADE_HEAP,
			 .end_addr = MADE_HEAP + MADE_HEAP_BYTES,
			 .is_read = true,
			 .is_write = true,
			 .path = "[heap]" },
		.rss_bytes = MADE_HEAP_BYTES,
		.anon_bytes = MADE_HEAP_BYTES,
	};
	h->map_list[1] = (struct mapping){
		.map = { .start_addr = MADE_DATA,
			 .end_addr = MADE_DATA + MADE_DATA_BYTES,
			 .is_read = true,
			 .is_write = true,
			 .path = "/usr/lib/libc.so.6" },
		.rss_bytes = MADE_DATA_BYTES,
		.anon_bytes = MADE_DATA_BYTES,
	};
	h->map_list[2] = (struct mapping){
		.map = { .start_addr = MADE_CODE,
			 .end_addr = MADE_CODE + MEMORY_PAGE,
			 .is_exec = true,
			 .path = "/usr/lib/libc.so.6" },
	};
	made_class(made_word(h, MADE_CLASS), MADE_CLASS, MADE_CODE + 16);
	h->maps.list.data = h->map_list;
	h->maps.list.cnt = 3;
	h->last_free = made_bin(0);
	for (uint32_t i = 0; i < 127; i++)
		*made_word(h, made_bin(i) + 16) = *made_word(h, made_bin(i) + 24) = made_bin(i);
	*made_word(h, MADE_ARENA + 2160) = made_arena(h);
}

static inline void made_init(struct made_heap *h)
{
	made_init_as(h, &made_2_36);
}

static void made_release(struct made_heap *h)
{
	memory_release(&h->memory);
	types_free(h->types);
	free(h->data);
	free(h->heap);
}

/* In use, as far as its neighbours can tell. Return its address. */
static uint64_t made_chunk(struct made_heap *h, uint64_t bytes)
{
	uint64_t at = h->at;

	*made_word(h, at + 8) = bytes | !h->last_is_free;
	memset(made_word(h, at + 16), 0xee, bytes - 16);
	h->last_is_free = false;
	h->at += bytes;
	return at;
}

static uint64_t made_free(struct made_heap *h, uint64_t bytes)
{
	uint64_t at = made_chunk(h, bytes), bin = made_bin(0);

	*made_word(h, h->at) = bytes;
	h->last_is_free = true;
	*made_word(h, at + 16) = bin;
	*made_word(h, at + 24) = h->last_free;
	*made_word(h, h->last_free + 16) = at;
	*made_word(h, bin + 24) = at;
	h->last_free = at;
	return at;
}

static uint64_t made_fast(struct made_heap *h, uint64_t bytes)
{
	uint64_t *head = made_word(h, MADE_ARENA + 16 + (bytes / 16 - 2) * 8);
	uint64_t at = made_chunk(h, bytes);

	*made_word(h, at + 16) = (at + 16) >> 12 ^ *head;
	*head = at;
	return at;
}

static void made_cache(struct made_heap *h)
{
	uint16_t *cnts;

	h->cache = made_chunk(h, h->version->cache_bytes) + 16;
	cnts = (uint16_t *)made_word(h, h->cache);
	memset(cnts, 0, h->version->cache_bytes - 16);
	for (uint32_t i = 0; i < h->version->cache_entries_off / 2 && h->version->cache_counts_room;
	     i++)
		cnts[i] = (uint16_t)h->version->cache_cap;
}

static uint64_t made_cached(struct made_heap *h, uint64_t bytes)
{
	uint64_t at = made_chunk(h, bytes), i = bytes / 16 - 2;
	uint64_t *entry = made_word(h, h->cache + h->version->cache_entries_off + 8 * i);
	uint16_t *cnt = &((uint16_t *)made_word(h, h->cache))[i];

	*cnt = (uint16_t)(*cnt + (h->version->cache_counts_room ? -1 : 1));
	*made_word(h, at + 16) = (at + 16) >> 12 ^ *entry;
	*made_word(h, at + 24) = h->version->key_is_cache ? h->cache : MADE_KEY;
	*entry = at + 16;
	return at;
}

/* The rest of the heap is its top. */
static void made_end(struct made_heap *h)
{
	*made_word(h, h->at + 8) = (MADE_HEAP + MADE_HEAP_BYTES - h->at) | !h->last_is_free;
	*made_word(h, MADE_ARENA + 96) = h->at;
	*made_word(h, MADE_ARENA + 2184) = *made_word(h, MADE_ARENA + 2192) = MADE_HEAP_BYTES;
	*made_word(h, MADE_PARAMETERS) = *made_word(h, MADE_PARAMETERS + 8) = 131072;
	*made_word(h, MADE_PARAMETERS + 24) = 8;
	*(uint32_t *)((char *)made_word(h, MADE_PARAMETERS) + h->version->n_mmaps_max_off) = 65536;
	*made_word(h, MADE_PARAMETERS + h->version->sbrk_base_off) = MADE_HEAP;
	*made_word(h, MADE_PARAMETERS + h->version->cache_bins_off) = 64;
	*made_word(h, MADE_PARAMETERS + h->version->cache_cap_off) = h->version->cache_cap;
}

/* 200 live, half of them objects of ns::Foo; 100 free, 50 fast, 5 cached; then a free run of 3 pages. */
static void made_heap_whole_as(struct made_heap *h, const struct made_version *version)
{
	made_init_as(h, version);
	made_cache(h);
	for (int i = 0; i < 100; i++) {
		*made_word(h, made_chunk(h, 208) + 16) = MADE_VTABLE;
		made_free(h, 304);
		made_chunk(h, 48);
		if (i < 50 && version->has_fast)
			made_fast(h, 32 + (uint64_t)i % 7 * 16);
		if (i < 5)
			made_cached(h, 64);
	}
	made_free(h, 3 * MEMORY_PAGE);
	made_chunk(h, 64);
	made_end(h);
}

static void made_heap_whole(struct made_heap *h)
{
	made_heap_whole_as(h, &made_2_36);
}

/* 0, or what failed. */
static int made_walk(struct made_heap *h, struct glibc *g)
{
	int err;

	memset(g, 0, sizeof(*g));
	memory_forget(&h->memory);
	h->map_list[0].taken_bytes = h->map_list[1].taken_bytes = 0;
	types_free(h->types);
	h->types = NULL;
	err = types_new(&h->memory, &h->maps, NULL, &h->types);
	g->types = h->types;
	g->pins = h->pins;
	if (!err)
		err = glibc_find(&h->memory, &h->maps, g);
	if (!err)
		err = glibc_walk(&h->memory, &h->maps, g);
	types_finish(h->types);
	return err;
}

#endif
