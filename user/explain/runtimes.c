/* SPDX-License-Identifier: MIT */
/*
 * explain/runtimes.c - the heaps of runtimes that divide memory of their own: see explain/rows.h.
 *
 * Nothing is taken from a version or a name: memory is a runtime's only if its own structures say so, and these agree with
 * each other and with the mappings. What does not agree stays with its mapping.
 *
 *	JVM	It publishes counters in a file that it maps, hsperfdata, and among them how much its heap may take and
 *		has committed. The heap is the one range of mappings that has these sizes. That tells whose the memory is;
 *		how much of it objects take is the JVM's own count, which some collectors update only when they have run,
 *		so it is printed beside the row and makes no row. Serial, Parallel and G1: the others publish no
 *		such counters. The heap of ZGC is shared memory that its mapping names.
 *	Go	Of each 64 MiB of heap it keeps an array with a pointer for each page of 8 KiB, to the span that has it; and a
 *		span has its own address and size. Each pointer is followed, and 99 of 100 must agree. So each resident
 *		page is in a span that is in use, or free.
 *	V8	A page has a header with its address, its size, its isolate's heap, the area for objects, and its space,
 *		which has the same heap. The headers of V8 10 to 13 (Node 18 to 24).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain/rows.h"

#define SPARSE_BYTES (1ULL << 30)
#define SPARSE_PART 64

static bool is_private(const struct mapping *map)
{
	return !map->map.path[0] && !map->is_shared;
}

/* In a large mapping that is nearly empty no page is looked at. */
static bool is_dense(const struct mapping *map)
{
	uint64_t bytes = map->map.end_addr - map->map.start_addr;

	return bytes <= SPARSE_BYTES || map->rss_bytes >= bytes / SPARSE_PART;
}

/* Nothing is looked for in an allocator's. */
static bool is_candidate(const struct mapping *map)
{
	return is_private(map) && map->map.is_read && map->rss_bytes > 2 * map->taken_bytes &&
	       is_dense(map);
}

/* The first mapping that ends behind addr. */
static struct mapping *mappings_from(struct mappings *maps, uint64_t addr)
{
	size_t i = vec_first_behind(&maps->list, map.start_addr, addr);

	if (i && addr < maps->list.data[i - 1].map.end_addr)
		i--;
	return maps->list.data + i;
}

/* Take what is resident from its mappings. The range is what a process says, and may be very much larger than these.
 * *mapped: of it. */
static uint64_t take_range(struct memory *m, struct mappings *maps, uint64_t from, uint64_t to,
			   uint64_t *mapped)
{
	struct mapping *map = mappings_from(maps, from), *end = maps->list.data + maps->list.cnt;
	uint64_t taken = 0;

	for (; map < end && map->map.start_addr < to; map++) {
		uint64_t at = map->map.start_addr > from ? map->map.start_addr : from;
		uint64_t last = map->map.end_addr < to ? map->map.end_addr : to;

		*mapped += last - at;
		if (!is_private(map) || !is_dense(map))
			continue;
		for (; at < last && map->taken_bytes + MEMORY_PAGE <= map->rss_bytes;
		     at += MEMORY_PAGE) {
			if (m->page(m->ctx, at) != PAGE_RESIDENT)
				continue;
			map->taken_bytes += MEMORY_PAGE;
			taken += MEMORY_PAGE;
		}
		if (memory_is_late(m))
			break;
	}
	return taken;
}

/* The JVM (src/hotspot/share/runtime/perfMemory.hpp, the same from JDK 8 to 25). */

#define COUNTERS_BYTES_CAP (1u << 20)
#define JAVA_STEPS (1u << 20) /* mappings that are looked at, some of them often */
#define JAVA_ALIGNMENT (1u << 20) /* of a heap; regions of G1 are not smaller */

struct counters_head {
	uint8_t magic[4], is_little, major, minor, is_accessible;
	uint32_t used, overflow;
	uint64_t time;
	uint32_t entry_off, entry_cnt;
};

struct counters_entry {
	uint32_t bytes, name_off, vector_cnt;
	char type;
	uint8_t flags, unit, variability;
	uint32_t data_off;
};

struct counters {
	uint64_t max[2], committed[2], used; /* of the generations */
	bool has_shared_max; /* each generation may have all of the heap */
	bool is_known;
};

static void read_counter(struct counters *c, const char *name, uint64_t value)
{
	const char *rest = name + strlen("sun.gc.generation.0."), *last = strrchr(name, '.');
	int generation = strlen(name) > strlen("sun.gc.generation.0.") ? rest[-2] - '0' : -1;

	if (strncmp(name, "sun.gc.generation.", 18) != 0 || (generation != 0 && generation != 1))
		return;
	if (!strcmp(rest, "maxCapacity"))
		c->max[generation] = value;
	else if (!strcmp(rest, "capacity"))
		c->committed[generation] = value;
	else if (!strcmp(last, ".used") && value < MEMORY_END)
		c->used += value;
}

/* text: with a NUL behind its end. */
static void read_counters(const char *text, size_t bytes, struct counters *c)
{
	static const uint8_t head_begins[] = { 0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1 };
	struct counters_head head;
	struct counters_entry e;
	size_t at;

	if (bytes < sizeof(head) || memcmp(text, head_begins, sizeof(head_begins)) != 0)
		return;
	memcpy(&head, text, sizeof(head));
	at = head.entry_off;
	for (uint32_t i = 0; i < head.entry_cnt; i++, at += e.bytes) {
		const char *name;
		uint64_t value;

		if (at > bytes || bytes - at < sizeof(e))
			return;
		memcpy(&e, text + at, sizeof(e));
		if (e.bytes < sizeof(e) || e.bytes > bytes - at || e.name_off >= e.bytes ||
		    e.data_off > e.bytes)
			return;
		name = text + at + e.name_off;
		if (e.type == 'J' && e.bytes - e.data_off >= sizeof(value)) {
			memcpy(&value, text + at + e.data_off, sizeof(value));
			read_counter(c, name, value);
		} else if (!strcmp(name, "sun.gc.policy.name")) {
			c->has_shared_max = !strcmp(text + at + e.data_off, "GarbageFirst");
			c->is_known = true;
		}
	}
}

static int find_counters(struct memory *m, const struct mappings *maps, struct counters *c)
{
	const struct mapping *map;
	char *text;

	vec_each(&maps->list, map) {
		size_t bytes = map->map.end_addr - map->map.start_addr, got = 0;

		if (!strstr(map->map.path, "/hsperfdata_") || bytes > COUNTERS_BYTES_CAP)
			continue;
		text = calloc(1, bytes + 1);
		if (!text)
			return -ENOMEM;
		got = memory_window(m, map->map.start_addr, text, bytes);
		memset(c, 0, sizeof(*c));
		read_counters(text, got, c);
		free(text);
		if (c->is_known)
			break;
	}
	return 0;
}

/* The end of the range of so many bytes that begins with this mapping and is nobody else's, or NULL. *ret_committed: of it. */
static const struct mapping *range_end(const struct mappings *maps, const struct mapping *first,
				       uint64_t bytes, uint32_t *steps_left,
				       uint64_t *ret_committed)
{
	const struct mapping *map, *end = maps->list.data + maps->list.cnt;
	uint64_t at = first->map.start_addr, range_end = at + bytes;

	*ret_committed = 0;
	if (!is_private(first) || at % JAVA_ALIGNMENT)
		return NULL;
	for (map = first; map < end && at < range_end && map->map.start_addr == at; map++) {
		if (map->is_shared || map->taken_bytes || !*steps_left)
			return NULL;
		--*steps_left;
		at = map->map.end_addr;
		*ret_committed += map->map.is_write ? at - map->map.start_addr : 0;
	}
	return at == range_end ? map : NULL;
}

/* The range with these sizes. Commits may be newer than the counter: one range of the size will do, if there is no other. */
static const struct mapping *find_java_range(const struct mappings *maps, uint64_t bytes,
					     uint64_t committed, uint64_t *ret_committed)
{
	const struct mapping *map, *found = NULL;
	bool is_exact = false, is_unique = false;
	uint32_t steps_left = JAVA_STEPS;

	vec_each(&maps->list, map) {
		uint64_t here;
		bool is_same;

		if (!range_end(maps, map, bytes, &steps_left, &here))
			continue;
		is_same = here == committed;
		if (is_same < is_exact)
			continue;
		is_unique = !found || is_same > is_exact;
		is_exact = is_same;
		found = map;
		*ret_committed = here;
	}
	return is_unique && steps_left ? found : NULL;
}

/* All of the mapping that is left. */
static void take_mapping(struct mapping *map, uint64_t *sum)
{
	*sum += map->rss_bytes > map->taken_bytes ? map->rss_bytes - map->taken_bytes : 0;
	map->taken_bytes = map->rss_bytes;
}

static int read_java(struct memory *m, struct mappings *maps, struct java_heap *ret)
{
	struct counters c = { 0 };
	const struct mapping *first;
	struct mapping *map;
	uint64_t bytes, committed, end;
	int err = find_counters(m, maps, &c);

	if (err || !c.is_known)
		return err;
	/* G1 adds up to 24 bytes, for tools that divide by these */
	bytes = page_down(c.has_shared_max ? c.max[1] : c.max[0] + c.max[1]);
	committed = page_down(c.committed[0] + c.committed[1]);
	first = bytes && bytes < MEMORY_END ? find_java_range(maps, bytes, committed, &committed) :
					      NULL;
	if (!first)
		return 0;
	end = first->map.start_addr + bytes;
	vec_each(&maps->list, map)
		if (map >= first && map->map.start_addr < end &&
		    is_private(map)) /* else it is an archive's */
			take_mapping(map, &ret->resident);
	ret->addr = first->map.start_addr;
	ret->reserved = bytes;
	ret->committed = committed;
	ret->used = c.used <= bytes ? c.used : 0; /* else it is no count */
	return 0;
}

/* Go (runtime/mheap.go). */

#define GO_ARENA_BYTES (64ULL << 20)
#define GO_PAGE 8192
#define GO_PAGES (GO_ARENA_BYTES / GO_PAGE)
#define GO_CHUNK_BYTES (MEMORY_PAGE / 8 * GO_PAGE) /* of which one page of an array is */
#define GO_ARENAS_CAP (1u << 14)
#define GO_SEARCH_PAGES (1u << 16)
#define GO_TRIES 4 /* pointers of a page */

/* runtime.mspan */
#define SPAN_START 24
#define SPAN_PAGES 32
enum { SPAN_DEAD, SPAN_OBJECTS, SPAN_STACKS, SPAN_STATES };

struct go_span {
	uint64_t start, end;
	uint8_t state;
};

struct go_arena {
	uint64_t addr, spans; /* the array */
};

struct go_arenas {
	VEC(struct go_arena) list;
};

static bool read_span_range(struct memory *m, uint64_t addr, struct go_span *ret)
{
	uint64_t pages;

	if (!memory_word(m, addr + SPAN_START, &ret->start) ||
	    !memory_word(m, addr + SPAN_PAGES, &pages) || !ret->start || ret->start % GO_PAGE ||
	    ret->start >= MEMORY_END || !pages || pages > (MEMORY_END - ret->start) / GO_PAGE)
		return false;
	ret->end = ret->start + pages * GO_PAGE;
	return true;
}

/* state_off: 99 in Go 1.18, 1.19 and from 1.22 on. The end of its objects is 13 bytes on. */
static bool read_span(struct memory *m, uint64_t addr, uint32_t state_off, struct go_span *ret)
{
	uint64_t word, limit;

	if (!read_span_range(m, addr, ret) || !memory_word(m, addr + state_off / 8 * 8, &word) ||
	    !memory_word(m, addr + state_off + 13, &limit))
		return false;
	ret->state = (uint8_t)(word >> state_off % 8 * 8);
	return ret->state < SPAN_STATES &&
	       (ret->state != SPAN_OBJECTS || (limit > ret->start && limit <= ret->end));
}

/* Is it a page of such an array? If a span begins at the nth page of what it is of, that is known. */
static bool is_spans_page(struct memory *m, uint64_t addr, struct go_arena *ret)
{
	uint64_t words[MEMORY_PAGE / 8], chunk;
	struct go_span span;
	int tries = 0;

	if (memory_read(m, addr, words, sizeof(words)))
		return false;
	for (uint64_t i = 0; i < MEMORY_PAGE / 8 && tries < GO_TRIES; i++) {
		if (!words[i] || (i && words[i] == words[i - 1]))
			continue;
		tries++;
		if (!read_span_range(m, words[i], &span))
			return false;
		chunk = span.start / GO_CHUNK_BYTES * GO_CHUNK_BYTES;
		if (span.start - chunk != i * GO_PAGE)
			continue;
		ret->addr = chunk / GO_ARENA_BYTES * GO_ARENA_BYTES;
		ret->spans = addr - (chunk - ret->addr) / GO_CHUNK_BYTES * MEMORY_PAGE;
		return true;
	}
	return false;
}

static int compare_arenas(const void *a, const void *b)
{
	const struct go_arena *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->spans < y->spans ? -1 : x->spans > y->spans;
}

/* The end of the whole arenas that begin with this mapping; 0: none does. That can be Go's heap, in part not accessible. */
static uint64_t arenas_end(const struct mappings *maps, const struct mapping *first)
{
	const struct mapping *map, *end = maps->list.data + maps->list.cnt;
	uint64_t at = first->map.start_addr, ret = 0;

	if (at % GO_ARENA_BYTES)
		return 0;
	for (map = first;
	     map < end && map->map.start_addr == at && is_private(map) && !map->taken_bytes;
	     map++) {
		at = map->map.end_addr;
		if (at % GO_ARENA_BYTES == 0)
			ret = at;
	}
	return ret;
}

static bool has_go_range(const struct mappings *maps)
{
	const struct mapping *map;

	vec_each(&maps->list, map)
		if (arenas_end(maps, map))
			return true;
	return false;
}

/* The arrays are not in the heap itself. If there is too much to search in, none is found. */
static int find_go_arenas(struct memory *m, const struct mappings *maps, struct go_arenas *ret)
{
	const struct mapping *map;
	struct go_arena arena;
	uint32_t left = GO_SEARCH_PAGES;
	uint64_t heap_end = 0;

	vec_each(&maps->list, map) {
		uint64_t at = map->map.start_addr;

		if (at >= heap_end)
			heap_end = arenas_end(maps, map);
		if (at < heap_end || !is_candidate(map) || !map->map.is_write)
			continue;
		for (; at < map->map.end_addr && left && !memory_is_late(m); at += MEMORY_PAGE) {
			if (m->page(m->ctx, at) != PAGE_RESIDENT)
				continue;
			left--;
			if (ret->list.cnt < GO_ARENAS_CAP && is_spans_page(m, at, &arena) &&
			    vec_push(&ret->list, arena))
				return -ENOMEM;
		}
	}
	if (!left || memory_is_late(m))
		ret->list.cnt = 0;
	vec_sort(&ret->list, compare_arenas);
	return 0;
}

/* From where on pages of the arena were not divided yet. */
static uint64_t divide_pages(struct memory *m, struct mappings *maps, uint64_t from, uint64_t to,
			     bool is_used, struct go_heap *ret)
{
	uint64_t *sum = is_used ? &ret->span_bytes : &ret->idle_bytes;

	*(is_used ? &ret->live : &ret->free) += take_range(m, maps, from, to, sum);
	return to;
}

/* How many pages of the arena are in a span, by this array, if a span's state is there? 0: it is none. */
static uint64_t check_spans(struct memory *m, const struct go_arena *a, const uint64_t *spans,
			    uint32_t state_off)
{
	uint64_t used = 0, wrong = 0, all = 0;
	struct go_span span = { 0 };
	bool is_right = false;

	for (uint64_t i = 0; i < GO_PAGES; i++) {
		uint64_t addr = a->addr + i * GO_PAGE;

		if (!spans[i])
			continue;
		if (!i || spans[i] != spans[i - 1])
			is_right = read_span(m, spans[i], state_off, &span);
		all++;
		wrong += !is_right;
		used += is_right && span.state && addr >= span.start && addr < span.end;
	}
	return wrong * 100 <= all ? used : 0;
}

static bool read_spans(struct memory *m, const struct go_arena *a, uint64_t *spans)
{
	return memory_window(m, a->spans, spans, GO_PAGES * 8) == GO_PAGES * 8;
}

/* The next array that is of another arena. *best, *state_off: of this one's arrays that which has most pages in spans, for other
 * tables have a few pointers to spans, too; state_off stays 0 if none is right. */
static size_t choose_spans(struct memory *m, const struct go_arenas *arenas, size_t i,
			   uint64_t *spans, const struct go_arena **best, uint32_t *state_off)
{
	static const uint32_t state_offs[] = { 99, 107, 115 };
	const struct go_arena *first = &arenas->list.data[i], *a, *before = NULL;
	uint64_t most = 0, used;

	for (; i < arenas->list.cnt && arenas->list.data[i].addr == first->addr; i++) {
		a = &arenas->list.data[i];
		if ((before && a->spans == before->spans) || !read_spans(m, a, spans))
			continue;
		before = a;
		for (size_t k = 0; k < sizeof(state_offs) / sizeof(*state_offs); k++) {
			used = check_spans(m, a, spans, state_offs[k]);
			if (used <= most)
				continue;
			most = used;
			*best = a;
			*state_off = state_offs[k];
		}
	}
	return i;
}

/* *done: what lies below was divided before. A span may go on behind the arena. */
static void divide_arena(struct memory *m, struct mappings *maps, const struct go_arena *a,
			 const uint64_t *spans, uint32_t state_off, uint64_t *done,
			 struct go_heap *ret)
{
	uint64_t at = a->addr > *done ? a->addr : *done, end = a->addr + GO_ARENA_BYTES;

	ret->arena_cnt++;
	while (at < end && !memory_is_late(m)) {
		struct go_span span;
		uint64_t addr = spans[(at - a->addr) / GO_PAGE];
		bool is_used = addr && read_span(m, addr, state_off, &span) && span.state &&
			       at >= span.start && at < span.end;

		at = divide_pages(m, maps, at, is_used ? span.end : at + GO_PAGE, is_used, ret);
	}
	*done = at;
}

static bool is_mapped_arena(struct mappings *maps, uint64_t addr)
{
	const struct mapping *map = mappings_from(maps, addr),
			     *end = maps->list.data + maps->list.cnt;
	uint64_t at = addr;

	for (; map < end && at < addr + GO_ARENA_BYTES && map->map.start_addr <= at &&
	       is_private(map);
	     map++)
		at = map->map.end_addr;
	return at >= addr + GO_ARENA_BYTES;
}

/* Arenas follow each other. One between, in which no span is in use, names none that could tell it: all of it is free. */
static void divide_free_arenas(struct memory *m, struct mappings *maps, uint64_t until,
			       uint64_t *done, struct go_heap *ret)
{
	while (*done && *done % GO_ARENA_BYTES == 0 && *done < until && !memory_is_late(m) &&
	       is_mapped_arena(maps, *done)) {
		ret->arena_cnt++;
		*done = divide_pages(m, maps, *done, *done + GO_ARENA_BYTES, false, ret);
	}
}

static int read_go(struct memory *m, struct mappings *maps, struct go_heap *ret)
{
	struct go_arenas arenas = { 0 };
	const struct go_arena *a = NULL;
	uint64_t *spans = NULL, done = 0;
	uint32_t state_off;
	int err;

	if (!has_go_range(maps))
		return 0;
	err = find_go_arenas(m, maps, &arenas);
	if (!err && arenas.list.cnt) {
		spans = malloc(GO_PAGES * 8);
		err = spans ? 0 : -ENOMEM;
	}
	for (size_t i = 0; spans && i < arenas.list.cnt && !memory_is_late(m);) {
		state_off = 0;
		i = choose_spans(m, &arenas, i, spans, &a, &state_off);
		if (!state_off || !read_spans(m, a, spans))
			continue;
		divide_free_arenas(m, maps, a->addr, &done, ret);
		divide_arena(m, maps, a, spans, state_off, &done, ret);
	}
	divide_free_arenas(m, maps, MEMORY_END, &done, ret);
	free(spans);
	vec_release(&arenas.list);
	return err;
}

/* V8 (src/heap/memory-chunk.h, memory-chunk-metadata.h, base-space.h). */

#define V8_ALIGNMENT (256u << 10)
#define V8_AREA_OFF_MAX (32u << 10)
#define V8_PAGES_CAP (1u << 16) /* that are looked at */
#define V8_SPACES_CAP 16
#define V8_WORDS 11

struct v8_page {
	uint64_t bytes, heap, area_start, area_end, allocated, space;
};

/* Where these are: words of the header, or of what its second word leads to. */
static const struct v8_layout {
	bool is_apart;
	uint8_t self, bytes, heap, area_start, area_end, allocated, space;
} v8_layouts[] = {
	{ false, 10, 0, 2, 3, 4, 5, 8 }, /* 10, 11 */
	{ false, 1, 2, 3, 4, 5, 6, 9 }, /* 12 */
	{ true, 1, 2, 8, 9, 7, 3, 10 }, /* 13 */
};

static bool read_v8_page(struct memory *m, uint64_t addr, const struct v8_layout *l,
			 struct v8_page *ret)
{
	uint64_t words[V8_WORDS], at = addr;

	if (l->is_apart && !memory_word(m, addr + 8, &at))
		return false;
	for (uint64_t i = 0; i < V8_WORDS; i++)
		if (!memory_word(m, at + 8 * i, &words[i]))
			return false;
	*ret = (struct v8_page){ .bytes = words[l->bytes],
				 .heap = words[l->heap],
				 .area_start = words[l->area_start],
				 .area_end = words[l->area_end],
				 .allocated = words[l->allocated],
				 .space = words[l->space] };
	return words[l->self] == addr;
}

static bool check_v8_page(struct memory *m, struct mappings *maps, uint64_t addr,
			  const struct v8_page *p)
{
	const struct mapping *map;
	uint64_t table, heap, id;

	if (!p->heap || !p->bytes || p->bytes % MEMORY_PAGE || p->bytes > MEMORY_END - addr ||
	    p->area_start <= addr || p->area_start > addr + V8_AREA_OFF_MAX ||
	    p->area_end <= p->area_start || p->area_end > addr + p->bytes ||
	    p->allocated > p->area_end - p->area_start)
		return false;
	map = mappings_find(maps, addr + p->bytes - 1);
	if (!map || !is_private(map) || !memory_word(m, p->space, &table) ||
	    !memory_word(m, p->space + 8, &heap) || !memory_word(m, p->space + 16, &id))
		return false;
	map = mappings_find(maps, table);
	return heap == p->heap && (uint32_t)id < V8_SPACES_CAP && map && map->map.path[0] == '/';
}

static bool is_v8_page(struct memory *m, struct mappings *maps, uint64_t addr, struct v8_page *ret)
{
	if (m->page(m->ctx, addr) != PAGE_RESIDENT)
		return false;
	for (size_t i = 0; i < sizeof(v8_layouts) / sizeof(*v8_layouts); i++)
		if (read_v8_page(m, addr, &v8_layouts[i], ret) && check_v8_page(m, maps, addr, ret))
			return true;
	return false;
}

static void add_v8_page(struct memory *m, struct mappings *maps, uint64_t addr,
			const struct v8_page *p, struct v8_heap *ret)
{
	uint64_t mapped = 0;
	size_t i = 0;

	while (i < ret->isolate_cnt && ret->isolates[i] != p->heap)
		i++;
	if (i == ret->isolate_cnt && i < V8_ISOLATES)
		ret->isolates[ret->isolate_cnt++] = p->heap;
	ret->page_cnt++;
	ret->allocated += p->allocated;
	ret->resident += take_range(m, maps, addr, addr + p->bytes, &mapped);
}

static void read_v8(struct memory *m, struct mappings *maps, struct v8_heap *ret)
{
	uint64_t at, done = 0;
	uint32_t left = V8_PAGES_CAP;
	const struct mapping *map;
	struct v8_page page;

	vec_each(&maps->list, map) {
		if (!is_candidate(map))
			continue;
		at = (map->map.start_addr + V8_ALIGNMENT - 1) / V8_ALIGNMENT * V8_ALIGNMENT;
		for (; at < map->map.end_addr && left && !memory_is_late(m); at += V8_ALIGNMENT) {
			left--;
			if (at < done || !is_v8_page(m, maps, at, &page))
				continue;
			add_v8_page(m, maps, at, &page, ret);
			done = at + page.bytes;
		}
	}
}

int runtimes_read(struct memory *m, struct mappings *maps, struct runtimes *ret)
{
	int err;

	memset(ret, 0, sizeof(*ret));
	python_pools_read(m, maps, &ret->python);
	err = read_java(m, maps, &ret->java);
	if (!err)
		read_v8(m, maps, &ret->v8);
	if (!err && !ret->java.resident && !ret->v8.page_cnt)
		err = read_go(m, maps, &ret->go);
	return err;
}
