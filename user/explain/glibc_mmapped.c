/* SPDX-License-Identifier: MIT */
/*
 * explain/glibc_mmapped.c - the blocks for which malloc called mmap(): see explain/glibc.h.
 *
 * Such a block begins with a header at the start of its pages: no flag but one, and a size of whole pages, to which 2.43 does
 * not count the header. memalign() leaves it, and puts a second one before the program's address, with its distance to the
 * first; only this one is changed by realloc(). The kernel merges neighbours, so one mapping may hold many blocks, and other
 * things; and a program may split a block by madvise(), as NumPy does with all but the first page of a large array. They are
 * searched for at the start of mappings and behind each other; only if that does not give as many as malloc
 * has counted, on every page. Foreign data may look like a header: if there are more than malloc has counted, none is believed.
 */
#include "explain/glibc_priv.h"

#define REFRESH_BYTES (256ULL << 10)
#define SPARSE_BYTES (1ULL << 30)
#define SPARSE_PART 64
#define SPLIT_CAP 64 /* mappings of a block */
#define HUGE_2_43 1 /* in place of the header's offset: of huge pages */

struct search {
	struct memory *memory;
	struct mappings *maps;
	struct glibc *g;
	bool is_thorough; /* every page */
	struct heap_pages *pages; /* NULL: only count */
	uint64_t end; /* of the last block */
	uint64_t cnt, bytes;
};

static bool may_hold(const struct mapping *map)
{
	return mapping_is_anonymous(map) && map->map.is_read && map->map.is_write &&
	       !map->is_shared;
}

/* Where a block that begins in the mapping ends at the latest. */
static uint64_t room_end(const struct search *s, const struct mapping *map)
{
	const struct mapping *last = s->maps->list.data + s->maps->list.cnt - 1;

	for (int i = 0; i < SPLIT_CAP && map < last && may_hold(map + 1) &&
			map[1].map.start_addr == map->map.end_addr;
	     i++)
		map++;
	return map->map.end_addr;
}

static bool is_2_43(const struct search *s)
{
	return s->g->bins_off == ARENA_BINS_2_43;
}

/* The bytes of the pages whose header at `off` has this size, or 0. */
static uint64_t bytes_of(const struct search *s, uint64_t off, uint64_t size, uint64_t room)
{
	uint64_t bytes = off + (size & ~CHUNK_FLAGS) + (is_2_43(s) ? 16 : 0);

	if ((size & CHUNK_FLAGS) != CHUNK_MMAPPED || bytes < (size & ~CHUNK_FLAGS) || bytes > room)
		return 0;
	return bytes % MEMORY_PAGE ? 0 : bytes;
}

static bool has_offset(const struct search *s, uint64_t word, uint64_t off)
{
	return word == off || (is_2_43(s) && word == (off | HUGE_2_43));
}

/* Where memalign() puts its header: 16 bytes before a multiple of the alignment, behind room for a chunk. */
static uint64_t aligned_off(uint64_t addr, uint64_t align)
{
	uint64_t off = ((addr + 16 + align - 1) & -align) - 16 - addr;

	return off < CHUNK_MIN ? off + align : off;
}

/* The bytes of the pages of the block that begins at addr, or 0. room: from there on. *ret_off: of the header that counts. */
static uint64_t block_at(const struct search *s, uint64_t addr, uint64_t room, uint64_t *ret_off)
{
	struct memory *m = s->memory;
	uint64_t head[2], word, size, bytes;

	if (m->page(m->ctx, addr) == PAGE_ABSENT || m->read(m->ctx, addr, head, sizeof(head)) ||
	    !has_offset(s, head[0], 0) || (head[1] & CHUNK_FLAGS) != CHUNK_MMAPPED)
		return 0;
	for (uint64_t align = CHUNK_MIN; align < head[1] && align < room; align *= 2) {
		*ret_off = aligned_off(addr, align);
		if (*ret_off < room && memory_word(m, addr + *ret_off, &word) &&
		    has_offset(s, word, *ret_off) && memory_word(m, addr + *ret_off + 8, &size)) {
			bytes = bytes_of(s, *ret_off, size, room);
			if (bytes)
				return bytes;
		}
	}
	*ret_off = 0;
	return bytes_of(s, 0, head[1], room);
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

/* Of a large mapping that is nearly empty, not every page is asked for. */
static bool is_sparse(const struct mapping *map)
{
	uint64_t bytes = map->map.end_addr - map->map.start_addr;

	return bytes > SPARSE_BYTES && map->rss_bytes < bytes / SPARSE_PART;
}

static void search_mapping(struct search *s, const struct mapping *map)
{
	uint64_t at = map->map.start_addr, end = map->map.end_addr, next, bytes, word, off;
	const uint64_t room = room_end(s, map);
	bool is_thorough = s->is_thorough && !is_sparse(map);

	if (at < s->end)
		at = s->end;
	for (; at < end && !memory_is_late(s->memory); at = next) {
		next = heap_end(s->g, at);
		if (next)
			continue;
		if (at == map->map.start_addr || !(at % REFRESH_BYTES))
			s->memory->refresh(s->memory->ctx, at, REFRESH_BYTES);
		bytes = block_at(s, at, room - at, &off);
		next = bytes ? at + bytes : is_thorough ? at + MEMORY_PAGE : end;
		if (!bytes)
			continue;
		s->end = next;
		s->cnt++;
		s->bytes += bytes;
		if (!s->pages)
			continue;
		s->pages->type = memory_word(s->memory, at + off + 16, &word) ?
					 types_find(s->g->types, word) :
					 0;
		s->pages->lead_bytes = off;
		heap_pages_add(s->pages, at, bytes, HEAP_LIVE);
	}
}

static void search(struct search *s)
{
	struct mapping *map;

	s->cnt = s->bytes = s->end = 0;
	vec_each(&s->maps->list, map)
		if (may_hold(map) && map->rss_bytes)
			search_mapping(s, map);
}

static bool is_all(const struct search *s)
{
	const struct glibc_parameters *p = &s->g->parameters;

	return s->cnt == p->mmapped_cnt && s->bytes == p->mmapped_bytes;
}

/* A few may have been mapped since they were counted. */
static bool is_more(const struct search *s)
{
	uint64_t counted = s->g->parameters.mmapped_cnt;

	return s->cnt > counted + counted / 8 + 1;
}

void glibc_walk_mmapped(struct memory *m, struct mappings *maps, struct glibc *g)
{
	struct heap_pages pages = {
		.memory = m,
		.maps = maps,
		.sum = &g->mmapped,
		.classes = g->classes,
		.types = g->types,
		.pins = g->pins,
	};
	struct search s = { .memory = m, .maps = maps, .g = g };
	struct glibc_parameters *p = &g->parameters;
	bool is_doubtful;
	uint32_t cnt;

	if (!p->is_known || memory_read(m, p->mmapped_cnt_addr, &cnt, sizeof(cnt)) ||
	    memory_read(m, p->mmapped_bytes_addr, &p->mmapped_bytes, 8))
		return;
	p->mmapped_cnt = cnt;
	search(&s);
	is_doubtful = is_more(&s);
	if (!is_all(&s)) {
		s.is_thorough = true;
		search(&s);
		s.is_thorough = !is_more(&s);
	}
	if (is_doubtful)
		return;
	s.pages = &pages;
	search(&s);
	heap_pages_end(&pages);
	types_settle(g->types, true);
}
