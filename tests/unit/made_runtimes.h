/* SPDX-License-Identifier: MIT */
/* made_runtimes.h - the heaps of a JVM, of V8 and of Go, word by word, and the memory in which they are. */
#ifndef HT_MADE_RUNTIMES_H
#define HT_MADE_RUNTIMES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "explain/rows.h"

#define PART_BYTES (1u << 20)
#define PARTS 3
#define MIB (1ULL << 20)

/* Three parts of memory have content; the rest of all mappings is zeros. All is resident. */
struct made {
	struct memory m;
	struct mapping list[8];
	struct mappings maps;
	uint64_t parts[PARTS]; /* addresses */
	char *content[PARTS];
	uint64_t read_cnt;
};

static inline char *at(struct made *h, uint64_t addr)
{
	for (int i = 0; i < PARTS; i++)
		if (addr >= h->parts[i] && addr < h->parts[i] + PART_BYTES)
			return h->content[i] + (addr - h->parts[i]);
	return NULL;
}

static inline void set(struct made *h, uint64_t addr, uint64_t value)
{
	memcpy(at(h, addr), &value, sizeof(value));
}

static int read_made(void *ctx, uint64_t addr, void *buf, size_t bytes)
{
	struct made *h = ctx;
	char *to = buf;

	h->read_cnt++;
	for (size_t done = 0; done < bytes; done += 8) {
		const char *from = at(h, (addr + done) & ~7ULL);

		memset(to + done, 0, bytes - done < 8 ? bytes - done : 8);
		if (from)
			memcpy(to + done, from, bytes - done < 8 ? bytes - done : 8);
	}
	return 0;
}

static enum page_state made_page(void *ctx, uint64_t addr)
{
	struct made *h = ctx;

	return mappings_find(&h->maps, addr) ? PAGE_RESIDENT : PAGE_ABSENT;
}

static void no_refresh(void *ctx, uint64_t addr, size_t bytes)
{
}

static inline void add_map(struct made *h, uint64_t start, uint64_t bytes, const char *path,
			   bool is_write)
{
	h->list[h->maps.list.cnt++] = (struct mapping){ .map = { .start_addr = start,
								 .end_addr = start + bytes,
								 .path = (char *)path,
								 .is_read = is_write || path[0],
								 .is_write = is_write },
							.rss_bytes = is_write ? bytes : 0 };
}

static inline void begin(struct made *h, uint64_t a, uint64_t b, uint64_t c)
{
	memset(h, 0, sizeof(*h));
	h->m = (struct memory){ .read = read_made,
				.page = made_page,
				.refresh = no_refresh,
				.ctx = h,
				.deadline_ns = now_ns() + 20 * NS_PER_S };
	if (memory_init(&h->m))
		abort();
	h->maps.list.data = h->list;
	h->parts[0] = a;
	h->parts[1] = b;
	h->parts[2] = c;
	for (int i = 0; i < PARTS; i++)
		if (!(h->content[i] = calloc(1, PART_BYTES)))
			abort();
}

static inline struct runtimes found(struct made *h)
{
	struct runtimes rt;

	for (size_t i = 0; i < h->maps.list.cnt; i++)
		h->list[i].taken_bytes = 0;
	memory_forget(&h->m);
	if (runtimes_read(&h->m, &h->maps, &rt))
		abort();
	return rt;
}

static inline void end(struct made *h)
{
	for (int i = 0; i < PARTS; i++)
		free(h->content[i]);
	memory_release(&h->m);
}

#define COUNTERS 0x7f0000000000ULL
#define JAVA_HEAP 0xf0000000ULL

static inline uint64_t add_counter(struct made *h, uint64_t addr, const char *name, uint64_t value,
				   const char *text)
{
	uint32_t *words = (uint32_t *)(void *)at(h, addr), data = 20 + 64;

	words[0] = data + 32;
	words[1] = 20;
	words[2] = text ? 32 : 0;
	*((char *)words + 12) = text ? 'B' : 'J';
	words[4] = data;
	snprintf((char *)words + 20, 64, "%s", name);
	if (text)
		snprintf((char *)words + data, 32, "%s", text);
	else
		memcpy((char *)words + data, &value, sizeof(value));
	return addr + words[0];
}

/* A heap of 64 MiB, of which 48 are committed and 10 are in use. is_g1: each generation may be all of it. */
static inline void make_java(struct made *h, bool is_g1)
{
	static const uint8_t head[] = { 0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1 };
	const uint32_t entries[2] = { 32, 7 };
	uint64_t to = COUNTERS + 32;

	begin(h, COUNTERS, 1, 1);
	add_map(h, JAVA_HEAP, 48 * MIB, "", true);
	add_map(h, JAVA_HEAP + 48 * MIB, 16 * MIB, "", false);
	/* an arena of glibc has the same size */
	add_map(h, JAVA_HEAP + 128 * MIB, MIB, "", true);
	add_map(h, JAVA_HEAP + 129 * MIB, 63 * MIB, "", false);
	add_map(h, COUNTERS, 32768, "/tmp/hsperfdata_root/7", true);
	h->list[4].is_shared = true;
	memcpy(at(h, COUNTERS), head, sizeof(head));
	memcpy(at(h, COUNTERS + 24), entries, sizeof(entries));
	to = add_counter(h, to, "sun.gc.policy.name", 0, is_g1 ? "GarbageFirst" : "Copy:MSC");
	to = add_counter(h, to, "sun.gc.generation.0.maxCapacity", (is_g1 ? 64 : 24) * MIB, NULL);
	to = add_counter(h, to, "sun.gc.generation.1.maxCapacity", is_g1 ? 64 * MIB + 8 : 40 * MIB,
			 NULL);
	to = add_counter(h, to, "sun.gc.generation.0.capacity", 20 * MIB, NULL);
	to = add_counter(h, to, "sun.gc.generation.1.capacity", 28 * MIB, NULL);
	to = add_counter(h, to, "sun.gc.generation.0.space.0.used", 4 * MIB, NULL);
	add_counter(h, to, "sun.gc.generation.1.space.0.used", 6 * MIB, NULL);
}

#define V8_PAGE 0x10000000000ULL
#define V8_SPACE 0x20000000000ULL
#define V8_TABLE 0x400000ULL

static inline void make_v8(struct made *h, int version)
{
	/* address, size, heap, begin and end of the area, allocated, space: words of the header, or of what is apart */
	static const uint8_t words[3][7] = { { 10, 0, 2, 3, 4, 5, 8 },
					     { 1, 2, 3, 4, 5, 6, 9 },
					     { 1, 2, 8, 9, 7, 3, 10 } };
	uint64_t to = version == 13 ? V8_SPACE + 4096 : V8_PAGE;
	const uint64_t values[7] = { V8_PAGE,	       256 << 10, V8_SPACE + 8192, V8_PAGE + 4096,
				     V8_PAGE + 262144, 1000,	  V8_SPACE };

	begin(h, V8_PAGE, V8_SPACE, V8_TABLE);
	add_map(h, V8_TABLE, MIB, "/usr/bin/node", true);
	add_map(h, V8_PAGE, 512 << 10, "", true);
	add_map(h, V8_SPACE, MIB, "", true);
	if (version == 13)
		set(h, V8_PAGE + 8, to);
	for (int i = 0; i < 7; i++)
		set(h, to + 8ULL * words[version - 11][i], values[i]);
	set(h, V8_SPACE, V8_TABLE + 64);
	set(h, V8_SPACE + 8, V8_SPACE + 8192);
	set(h, V8_SPACE + 16, 2 | 7ULL << 32);
}

#define GO_HEAP 0xc000000000ULL
#define GO_SPANS 0x7f0000000000ULL
#define GO_SPAN(n) (GO_SPANS + 128 * 1024 + (n)*160ULL)

static inline void make_span(struct made *h, int n, uint32_t state_off, uint64_t first,
			     uint64_t pages, uint8_t state)
{
	uint64_t start = GO_HEAP + first * 8192;

	set(h, GO_SPAN(n) + 24, start);
	set(h, GO_SPAN(n) + 32, pages);
	*at(h, GO_SPAN(n) + state_off) = (char)state;
	set(h, GO_SPAN(n) + state_off + 13, start + 100);
	for (uint64_t i = first; i < first + pages && i < 8192; i++)
		set(h, GO_SPANS + i * 8, GO_SPAN(n));
}

/* 20 pages of objects, 10 free, 2 of stacks, and a span that goes on in the next arena, of which no array is seen. */
static inline void make_go(struct made *h, uint32_t state_off)
{
	begin(h, GO_SPANS, 1, 1);
	add_map(h, GO_HEAP, 72 * MIB, "", true);
	add_map(h, GO_HEAP + 72 * MIB, 56 * MIB, "", false);
	add_map(h, GO_SPANS, PART_BYTES, "", true);
	make_span(h, 0, state_off, 0, 20, 1);
	make_span(h, 1, state_off, 20, 10, 0);
	make_span(h, 2, state_off, 30, 2, 2);
	make_span(h, 3, state_off, 8192 - 128, 256, 1);
	/* another table that names spans, at the place where an array could begin, below it */
	set(h, GO_SPANS + 512 * 1024, GO_SPAN(0));
}

#endif
