/* SPDX-License-Identifier: MIT */
/* made_jemalloc.h - a process's memory as jemalloc would leave it: one tree, with a leaf, slabs and large extents. */
#ifndef TEST_MADE_JEMALLOC_H
#define TEST_MADE_JEMALLOC_H

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "explain/jemalloc.h"
#include "made_class.h"

#define PROGRAM 0x7f0000000000ULL /* headers and .data: one page, then .bss */
#define CLASS (PROGRAM + 0x800)
#define BSS (PROGRAM + MEMORY_PAGE)
#define BSS_BYTES (0x200000ULL + 0x10000)
#define ROOT (BSS + 0x5b18)
#define BASE 0x7f0020000000ULL /* a block of metadata: its header, a leaf, descriptors */
#define BASE_BYTES 0x600000ULL
#define LEAF (BASE + 0x1040)
#define DESCRIPTORS (BASE + 0x201100)
#define HEAP 0x7f0040000000ULL
#define CODE 0x7f0080000000ULL
#define HEAP_BYTES 0x200000ULL
#define INDEX (HEAP >> 30)

#define SMALL_CNT 200 /* slabs of 64 regions of 64 bytes */
#define WIDE_CNT 20 /* slabs of three pages, with 256 regions of 48 bytes */
#define LIVE_CNT (SMALL_CNT * 16 + WIDE_CNT * 64 + 1)

enum { ACTIVE, DIRTY, MUZZY, RETAINED };
enum { MAP_DATA, MAP_BSS, MAP_BASE, MAP_HEAP, MAP_CODE, MAP_CNT };

struct made {
	struct memory memory;
	struct mappings maps;
	struct mapping map_list[MAP_CNT];
	char *bytes[MAP_CNT];
	bool is_old; /* descriptors of 5.2 */
	uint64_t descriptor, at;
	uint64_t absent_from, absent_end;
	uint64_t read_cnt;
	uint64_t *torn; /* changes with each reading; NULL: none */
	struct types *types; /* of the last reading */
	struct resident_pins *pins; /* of the next one; NULL: none */
};

static void *at(struct made *h, uint64_t addr, size_t bytes)
{
	for (size_t i = 0; i < MAP_CNT; i++)
		if (addr >= h->map_list[i].map.start_addr && addr < h->map_list[i].map.end_addr &&
		    bytes <= h->map_list[i].map.end_addr - addr)
			return h->bytes[i] + (addr - h->map_list[i].map.start_addr);
	return NULL;
}

static uint64_t *word(struct made *h, uint64_t addr)
{
	return at(h, addr, 8);
}

static int read_made(void *ctx, uint64_t addr, void *buf, size_t bytes)
{
	struct made *h = ctx;
	size_t part;

	h->read_cnt++;
	if (h->torn)
		*h->torn ^= 1ULL << h->read_cnt % 48;
	for (size_t done = 0; done < bytes; done += part) {
		void *from = at(h, addr + done, 1);

		part = MEMORY_PAGE - (addr + done) % MEMORY_PAGE;
		part = part < bytes - done ? part : bytes - done;
		if (!from)
			return -EFAULT;
		memcpy((char *)buf + done, from, part);
	}
	return 0;
}

static enum page_state page_made(void *ctx, uint64_t addr)
{
	const struct made *h = ctx;

	return !at(ctx, page_down(addr), MEMORY_PAGE) ||
			       (addr >= h->absent_from && addr < h->absent_end) ?
		       PAGE_ABSENT :
		       PAGE_RESIDENT;
}

static void no_refresh(void *ctx, uint64_t addr, size_t bytes)
{
}

static void set_word(struct made *h, uint64_t addr, uint64_t value)
{
	*word(h, LEAF + (addr - HEAP) / MEMORY_PAGE * 8) = value;
}

/* The next extent; return its descriptor. A large block begins at offset 0x140 of its first page. */
static uint64_t add_extent(struct made *h, uint64_t pages, uint64_t state, uint64_t class,
			   bool is_slab, uint64_t free_cnt)
{
	uint64_t d = h->descriptor, leaf = d | class << 48 | (h->is_old ? 0 : state << 2) | is_slab;

	*word(h, d) = is_slab << 12 | state << (h->is_old ? 16 : 17) |
		      class << (h->is_old ? 18 : 20) | free_cnt << (h->is_old ? 26 : 28);
	*word(h, d + 8) = h->at + (state == ACTIVE && !is_slab ? 0x140 : 0);
	*word(h, d + 16) = pages * MEMORY_PAGE + 7; /* and a number of jemalloc's own */
	for (uint64_t i = 0; i < pages; i++)
		if (is_slab || !i)
			set_word(h, h->at + i * MEMORY_PAGE, leaf);
	if (!is_slab && pages > 1)
		set_word(h, h->at + (pages - 1) * MEMORY_PAGE,
			 (leaf & ((1ULL << 48) - 1)) | 232ULL << 48);
	h->descriptor += 128;
	h->at += pages * MEMORY_PAGE;
	return d;
}

/* The first block is an object of ns::Foo. */
static void add_slab(struct made *h, uint64_t pages, uint64_t class, uint64_t regions)
{
	uint64_t *object = word(h, h->at);
	uint64_t d = add_extent(h, pages, ACTIVE, class, true, regions - regions / 4);

	/* each fourth is live */
	for (uint64_t i = 0; i < regions / 64; i++)
		*word(h, d + 64 + 8 * i) = 0xeeeeeeeeeeeeeeee;
	*object = CLASS + MADE_CLASS_VTABLE;
}

static void make(struct made *h, bool is_old)
{
	static const struct mapping list[MAP_CNT] = {
		{ .map = { PROGRAM, BSS, .path = "/usr/bin/server" }, .anon_bytes = MEMORY_PAGE },
		{ .map = { BSS, BSS + BSS_BYTES, .path = "" }, .anon_bytes = BSS_BYTES },
		{ .map = { BASE, BASE + BASE_BYTES, .path = "" }, .anon_bytes = BASE_BYTES },
		{ .map = { HEAP, HEAP + HEAP_BYTES, .path = "" }, .anon_bytes = HEAP_BYTES },
		{ .map = { CODE, CODE + MEMORY_PAGE, .is_exec = true, .path = "/usr/bin/server" } },
	};
	Elf64_Ehdr *head;
	Elf64_Phdr *ph;

	*h = (struct made){ .is_old = is_old, .descriptor = DESCRIPTORS, .at = HEAP };
	h->memory = (struct memory){ .read = read_made,
				     .page = page_made,
				     .refresh = no_refresh,
				     .ctx = h,
				     .deadline_ns = now_ns() + 60 * NS_PER_S };
	for (size_t i = 0; i < MAP_CNT; i++) {
		h->map_list[i] = list[i];
		h->map_list[i].map.is_read = h->map_list[i].map.is_write = i != MAP_CODE;
		h->map_list[i].rss_bytes = list[i].map.end_addr - list[i].map.start_addr;
		h->bytes[i] = calloc(1, h->map_list[i].rss_bytes);
		if (!h->bytes[i])
			abort();
	}
	if (memory_init(&h->memory))
		abort();
	h->maps.list.data = h->map_list;
	h->maps.list.cnt = MAP_CNT;
	head = at(h, PROGRAM, MEMORY_PAGE);
	memcpy(head->e_ident, ELFMAG, SELFMAG);
	head->e_phoff = sizeof(*head);
	head->e_phnum = 1;
	ph = at(h, PROGRAM + sizeof(*head), sizeof(*ph));
	ph->p_type = PT_LOAD;
	ph->p_memsz = MEMORY_PAGE + BSS_BYTES;
	made_class(at(h, CLASS, MADE_CLASS_BYTES), CLASS, CODE);

	*word(h, ROOT + 8 * INDEX) = LEAF;
	*word(h, BSS + 0x18) = LEAF; /* other words lead there too */
	*word(h, BASE) = BASE_BYTES;
	for (int i = 0; i < SMALL_CNT; i++)
		add_slab(h, 1, 4, 64);
	for (int i = 0; i < WIDE_CNT; i++)
		add_slab(h, 3, 3, 256);
	add_extent(h, 5, ACTIVE, 36, false, 0);
	add_extent(h, 8, DIRTY, 232, false, 0);
	add_extent(h, 4, MUZZY, 232, false, 0);
	h->absent_from = h->at;
	add_extent(h, 16, RETAINED, 232, false, 0);
	h->absent_end = h->at;
	*word(h, BASE + 16 + 8) = h->descriptor;
	*word(h, BASE + 16 + 16) = BASE + BASE_BYTES - h->descriptor;
}

static void release(struct made *h)
{
	types_free(h->types);
	memory_release(&h->memory);
	for (size_t i = 0; i < MAP_CNT; i++)
		free(h->bytes[i]);
}

/* 0, or what failed. */
static int read_made_tree(struct made *h, struct jemalloc *je)
{
	int err;

	memset(je, 0, sizeof(*je));
	memory_forget(&h->memory);
	for (size_t i = 0; i < MAP_CNT; i++)
		h->map_list[i].taken_bytes = 0;
	types_free(h->types);
	h->types = NULL;
	err = types_new(&h->memory, &h->maps, NULL, &h->types);
	je->types = h->types;
	je->pins = h->pins;
	if (!err)
		err = jemalloc_read(&h->memory, &h->maps, je);
	types_finish(h->types);
	return err;
}

#endif
