/* SPDX-License-Identifier: MIT */
/*
 * explain/glibc_mmapped.c - the blocks for which malloc called mmap(): see explain/glibc.h.
 *
 * Such a block begins with a header at the start of its pages, or further inside for memalign(), which says how far.
 * The kernel merges neighbours, so one mapping may hold many, and other things. They are searched for at the start of
 * mappings and behind each other; only if that does not give as many as malloc has counted, on every page.
 */
#include "explain/glibc_priv.h"

#define HEAD_AT_CAP (64u << 10) /* larger alignments are not looked for */

struct search {
	struct memory *memory;
	struct mappings *maps;
	struct glibc *g;
	bool is_thorough; /* every page */
	struct heap_pages *pages; /* NULL: only count */
	uint64_t cnt, bytes;
};

/* The size of a block whose header is at addr + at, or 0. room: bytes from addr on. */
static uint64_t block_at(struct memory *m, uint64_t addr, uint64_t at, uint64_t room)
{
	uint64_t head[2], bytes;

	if (memory_read(m, addr + at, head, sizeof(head)) || head[0] != at ||
	    (head[1] & CHUNK_FLAGS) != CHUNK_MMAPPED)
		return 0;
	bytes = head[1] & ~CHUNK_FLAGS;
	if (bytes < CHUNK_MIN || bytes > room - at || (at + bytes) % MEMORY_PAGE)
		return 0;
	return at + bytes;
}

/* Also with the header of an aligned block: in the first page, or at the end of one of the next. */
static uint64_t find_block(struct memory *m, uint64_t addr, uint64_t room, bool is_thorough)
{
	uint64_t bytes = block_at(m, addr, 0, room);

	for (uint64_t at = 16; !bytes && !is_thorough && at < HEAD_AT_CAP && at < room;
	     at += at < MEMORY_PAGE - 16 ? 16 : MEMORY_PAGE)
		bytes = block_at(m, addr, at, room);
	return bytes;
}

/* The end of the heap that addr is in, or 0. */
static uint64_t heap_end(struct glibc *g, uint64_t addr)
{
	struct glibc_arena *a;
	struct glibc_heap *heap;

	vec_each(&g->arenas, a)
		vec_each(&a->heaps, heap)
			if (addr >= page_down(heap->addr) && addr < page_up(heap->end))
				return page_up(heap->end);
	return 0;
}

static void search_mapping(struct search *s, const struct mapping *map)
{
	uint64_t at = map->map.start_addr, end = map->map.end_addr, next, bytes;

	for (; at < end && !memory_is_late(s->memory); at = next) {
		next = heap_end(s->g, at);
		if (next)
			continue;
		bytes = 0;
		if (!s->is_thorough || s->memory->page(s->memory->ctx, at) != PAGE_ABSENT)
			bytes = find_block(s->memory, at, end - at, s->is_thorough);
		next = bytes ? at + bytes : s->is_thorough ? at + MEMORY_PAGE : end;
		if (!bytes)
			continue;
		s->cnt++;
		s->bytes += bytes;
		if (s->pages)
			heap_pages_add(s->pages, at, bytes, HEAP_LIVE);
	}
}

static void search(struct search *s)
{
	struct mapping *map;

	s->cnt = s->bytes = 0;
	vec_each(&s->maps->list, map)
		if (mapping_is_anonymous(map) && map->map.is_read && map->map.is_write &&
		    !map->is_shared && map->rss_bytes)
			search_mapping(s, map);
}

static bool is_all(const struct search *s)
{
	const struct glibc_parameters *p = &s->g->parameters;

	return s->cnt == p->mmapped_cnt && s->bytes == p->mmapped_bytes;
}

void glibc_walk_mmapped(struct memory *m, struct mappings *maps, struct glibc *g)
{
	struct heap_pages pages = {
		.memory = m, .maps = maps, .sum = &g->mmapped, .classes = g->classes
	};
	struct search s = { .memory = m, .maps = maps, .g = g };
	struct glibc_parameters *p = &g->parameters;
	uint32_t cnt;

	if (!p->is_known || memory_read(m, p->mmapped_cnt_addr, &cnt, sizeof(cnt)) ||
	    memory_read(m, p->mmapped_bytes_addr, &p->mmapped_bytes, 8))
		return;
	p->mmapped_cnt = cnt;
	search(&s);
	if (!is_all(&s)) {
		s.is_thorough = true;
		search(&s);
		/* More than malloc knows of: something looks like a block. The careful search finds fewer. */
		s.is_thorough = s.cnt <= p->mmapped_cnt;
	}
	s.pages = &pages;
	search(&s);
	heap_pages_end(&pages);
}
