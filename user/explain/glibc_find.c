/* SPDX-License-Identifier: MIT */
/*
 * explain/glibc_find.c - finds malloc's arenas and parameters: see explain/glibc.h.
 *
 * The main arena is in the .data of the C library, or of a static executable. Its last bin is never used, so it is always
 * two pointers to itself: a pair of equal words that hold their own address less 16. All else is checked from there.
 */

#include "explain/glibc_priv.h"

/* The heaps of an arena. */

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
static int find_list(struct memory *m, const struct glibc *g, struct glibc_arena *a)
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
			       heap == own ? (a->addr + arena_bytes(g->bins_off) + 15) & ~15ULL :
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

/* Fill heaps of an arena, or say in why that they are not as they should be. -ENOMEM. */
static int glibc_find_heaps(struct memory *m, struct mappings *maps, const struct glibc *g,
			    struct glibc_arena *a)
{
	a->heaps.cnt = 0;
	if (a->top_bytes < CHUNK_MIN / 2 || a->top_bytes % 8) {
		SAY(a, "its top has no valid size");
		return 0;
	}
	return a->is_main ? find_break(maps, g, a) : find_list(m, g, a);
}

#define WINDOW_BYTES (256u << 10)
#define SCAN_BYTES_CAP (256ULL << 20) /* of all .data together */
#define ARENAS_CAP 20000
#define BIN_TRIES 3
#define TORN_BINS 4 /* that a thread may be changing */
/* So many are looked at again: of an arena no more are torn at once. */
#define LOOKED_BINS (GLIBC_BIN_CNT / 2)
#define ARENA_TRIES 40 /* for an arena in which a thread works */
#define ARENA_PAUSE_US 50
#define HEAP_SCORE 4

/* struct malloc_par of three ages, as far as it is used. */
static const struct parameters_layout {
	uint32_t thp, mmapped_cnt, mmapped_bytes, sbrk_base, cache_bins, cache_cap;
} layouts[] = {
	{ 48, 68, 88, 104, 112, 128 }, /* 2.43 */
	{ 40, 60, 80, 96, 104, 120 }, /* 2.35 to 2.42 */
	{ 0, 40, 56, 72, 80, 96 }, /* 2.26 to 2.34 */
};

static const uint32_t arena_layouts[] = { ARENA_BINS_2_27, ARENA_BINS_2_43, ARENA_BINS_2_26 };

/* An arena that is looked at. */
struct candidate {
	uint64_t addr;
	uint64_t state[ARENA_BYTES_CAP / 8]; /* as it was last read */
	uint32_t bins_off;
};

static uint64_t bin_addr(const struct candidate *c, uint32_t bin)
{
	return c->addr + c->bins_off + 16ULL * bin - 16;
}

/* A bin is empty, or its first and last chunk lead back to it. */
static bool bin_is_sound(struct memory *m, uint64_t bin, uint64_t first, uint64_t last)
{
	uint64_t back, forth;

	if (first == bin && last == bin)
		return true;
	return memory_word(m, first + 24, &back) && memory_word(m, last + 16, &forth) &&
	       back == bin && forth == bin;
}

/* Another thread may change a bin while it is read: look at it again, alone. */
static bool bin_is_sound_now(struct memory *m, uint64_t bin)
{
	uint64_t ends[2];

	for (int i = 0; i < BIN_TRIES; i++) {
		memory_forget(m);
		if (memory_read(m, bin + 16, ends, sizeof(ends)))
			return false;
		if (bin_is_sound(m, bin, ends[0], ends[1]))
			return true;
	}
	return false;
}

/* First what costs nothing: of anything else hardly a bin is sound. */
static bool bins_are_sound(struct memory *m, const struct candidate *c)
{
	uint32_t unsound[LOOKED_BINS], cnt = 0, torn = 0;

	for (uint32_t i = 0; i < GLIBC_BIN_CNT; i++) {
		if (bin_is_sound(m, bin_addr(c, i), word_at(c->state, c->bins_off + 16 * i),
				 word_at(c->state, c->bins_off + 16 * i + 8)))
			continue;
		if (cnt == LOOKED_BINS)
			return false;
		unsound[cnt++] = i;
	}
	for (uint32_t i = 0; i < cnt && torn <= TORN_BINS; i++)
		torn += !bin_is_sound_now(m, bin_addr(c, unsound[i]));
	return torn <= TORN_BINS;
}

/*
 * What no thread changes, so nothing else needs a second look: the last bin is never used, and the list of arenas leads to
 * this one or to another, which is there.
 */
static bool may_be_arena(struct memory *m, const struct candidate *c)
{
	const uint64_t last = bin_addr(c, GLIBC_BIN_CNT - 1), bytes = arena_bytes(c->bins_off);
	const uint64_t next = word_at(c->state, arena_next(c->bins_off));
	const char *bin = (const char *)c->state + c->bins_off + 16 * (GLIBC_BIN_CNT - 1);

	if (word_at(bin, 0) != last || word_at(bin, 8) != last)
		return false;
	if (next == c->addr)
		return true;
	if (!next || next % 8 || next >= MEMORY_END ||
	    (next + bytes > c->addr && next < c->addr + bytes))
		return false;
	m->refresh(m->ctx, next, bytes);
	return m->page(m->ctx, next) != PAGE_ABSENT;
}

/* An arena before its first block has no memory, and its first bin in place of a top. */
static bool is_arena(struct memory *m, const struct candidate *c)
{
	uint64_t top = word_at(c->state, arena_top(c->bins_off));
	uint64_t system = word_at(c->state, arena_system_mem(c->bins_off));

	if (system > word_at(c->state, arena_max_system_mem(c->bins_off)))
		return false;
	/* a heap that grows may have left what smaps said behind, so its page is what tells, as it is now */
	m->refresh(m->ctx, top, 16);
	if (system ? top % 16 || top >= MEMORY_END || m->page(m->ctx, top) == PAGE_ABSENT :
		     top && top != bin_addr(c, 0))
		return false;
	memory_forget(m);
	return bins_are_sound(m, c);
}

enum arena_look { ARENA_NONE, ARENA_TORN, ARENA_SOUND };

/* Threads may work in it, so what they change is looked at again for a while. */
static enum arena_look look_at_arena(struct memory *m, struct candidate *c)
{
	for (int i = 0; i < ARENA_TRIES; i++) {
		if (c->addr % 8 || memory_read(m, c->addr, c->state, arena_bytes(c->bins_off)) ||
		    !may_be_arena(m, c))
			return ARENA_NONE;
		if (is_arena(m, c))
			return ARENA_SOUND;
		usleep(ARENA_PAUSE_US);
	}
	return ARENA_TORN;
}

/* Follow the list of arenas round to its beginning. -ENOENT: it does not lead there, or begins at none; g->why then says so. */
static int find_ring(struct memory *m, uint64_t main_arena, uint32_t bins_off, struct glibc *g)
{
	struct candidate c = { .addr = main_arena, .bins_off = bins_off };
	int err = -ENOENT;

	do {
		struct glibc_arena a = { .addr = c.addr, .is_main = c.addr == main_arena };
		enum arena_look look = look_at_arena(m, &c);

		if (look == ARENA_NONE && a.is_main)
			goto out;
		if (look == ARENA_NONE || g->arenas.cnt >= ARENAS_CAP) {
			snprintf(g->why, sizeof(g->why),
				 "the list of arenas leads to %#llx, which is not an arena, or "
				 "is swapped out",
				 (unsigned long long)c.addr);
			goto out;
		}
		if (look == ARENA_TORN)
			snprintf(a.why, sizeof(a.why), "its bins are inconsistent");
		if (look == ARENA_TORN && a.is_main) {
			snprintf(g->why, sizeof(g->why), "its main arena at %#llx is inconsistent",
				 (unsigned long long)c.addr);
			goto out;
		}
		a.system_bytes = word_at(c.state, arena_system_mem(bins_off));
		if (vec_push(&g->arenas, a)) {
			err = -ENOMEM;
			goto out;
		}
		c.addr = word_at(c.state, arena_next(bins_off));
	} while (c.addr != main_arena);
	g->main_arena = main_arena;
	g->bins_off = bins_off;
	g->why[0] = '\0'; /* of a false one before it */
	return 0;
out:
	vec_release(&g->arenas);
	return err;
}

/* What is done with a window of .data: words up to cnt belong to it, and a page behind them can be read as well. */
struct scan {
	struct memory *memory;
	struct mappings *maps;
	struct glibc *g;
	uint64_t left_bytes;
	int best; /* of the parameters */
	int (*window)(struct scan *s, uint64_t addr, const uint64_t *words, size_t cnt);
};

/* With the last bin at last_bin. Of several reasons against it the first is kept. -ENOENT: it is none. */
static int try_layouts(struct scan *s, uint64_t last_bin)
{
	const uint64_t bins = last_bin - 16 * (GLIBC_BIN_CNT - 1);
	char why[sizeof(s->g->why)] = "";
	int err = -ENOENT;

	for (size_t i = 0; i < sizeof(arena_layouts) / sizeof(*arena_layouts); i++) {
		err = find_ring(s->memory, bins - arena_layouts[i], arena_layouts[i], s->g);
		if (err != -ENOENT)
			return err;
		if (!why[0])
			snprintf(why, sizeof(why), "%s", s->g->why);
	}
	snprintf(s->g->why, sizeof(s->g->why), "%s", why);
	return err;
}

static int find_main(struct scan *s, uint64_t addr, const uint64_t *words, size_t cnt)
{
	int err = 0;

	for (size_t i = 0; i < cnt && !s->g->main_arena && !err; i++) {
		if (words[i] != addr + 8 * i - 16 || words[i + 1] != words[i])
			continue;
		err = try_layouts(s, addr + 8 * i);
		if (err == -ENOENT)
			err = 0;
	}
	return err;
}

/* What is counted as 0 is 0 bytes, nothing is more than its maximum; then what is as it is in most programs. */
static int score_parameters(struct scan *s, const char *p, const struct parameters_layout *l)
{
	uint64_t base = word_at(p, l->sbrk_base);
	const struct mapping *heap;
	int score;
	uint32_t cnt = *(const uint32_t *)(p + l->mmapped_cnt);
	uint32_t cnt_cap = *(const uint32_t *)(p + l->mmapped_cnt + 4);
	uint32_t cnt_max = *(const uint32_t *)(p + l->mmapped_cnt + 8);
	uint64_t bytes = word_at(p, l->mmapped_bytes);

	if (!cnt != !bytes || bytes % MEMORY_PAGE || cnt > cnt_max ||
	    bytes > word_at(p, l->mmapped_bytes + 8))
		return 0;
	/* the default of top_pad, and of arena_test */
	score = 2 * (cnt_cap == 65536) + (word_at(p, 8) == 131072) + (word_at(p, 24) == 8) +
		2 * (word_at(p, l->cache_bins) == 64);
	if (score + HEAP_SCORE <= s->best)
		return 0;
	heap = mappings_find(s->maps, base);
	if (heap && mapping_is_anonymous(heap) && heap->map.start_addr == page_down(base) &&
	    base <= s->g->arenas.data[0].top)
		score += HEAP_SCORE;
	return score;
}

static int find_parameters(struct scan *s, uint64_t addr, const uint64_t *words, size_t cnt)
{
	struct glibc_parameters *p = &s->g->parameters;

	for (size_t i = 0; i < cnt; i++) {
		for (size_t k = 0; k < sizeof(layouts) / sizeof(*layouts); k++) {
			const struct parameters_layout *l = &layouts[k];
			const char *at = (const char *)&words[i];
			int score = score_parameters(s, at, l);

			if (score <= s->best)
				continue;
			s->best = score;
			*p = (struct glibc_parameters){
				.is_known = true,
				.addr = addr + 8 * i,
				.trim_threshold = word_at(at, 0),
				.sbrk_base = word_at(at, l->sbrk_base),
				.thp_bytes = l->thp ? word_at(at, l->thp) : 0,
				.mmapped_cnt_addr = addr + 8 * i + l->mmapped_cnt,
				.mmapped_bytes_addr = addr + 8 * i + l->mmapped_bytes,
				.cache_cap = word_at(at, l->cache_cap),
			};
		}
	}
	return 0;
}

static int scan_mapping(struct scan *s, const struct mapping *map, uint64_t *buf)
{
	uint64_t addr = map->map.start_addr, end = map->map.end_addr;
	const size_t step = WINDOW_BYTES - MEMORY_PAGE;
	int err = 0;

	for (; !err && addr < end && s->left_bytes >= WINDOW_BYTES; addr += step) {
		size_t bytes = end - addr < WINDOW_BYTES ? end - addr : WINDOW_BYTES;

		s->left_bytes -= bytes;
		bytes = memory_window(s->memory, addr, buf, bytes);
		memset((char *)buf + bytes, 0, MEMORY_PAGE);
		err = s->window(s, addr, buf, (bytes < step ? bytes : step) / 8);
	}
	return err;
}

static bool is_data(const struct mapping *map)
{
	return map->map.path[0] == '/' && map->map.is_read && map->map.is_write &&
	       !map->is_shared && map->anon_bytes;
}

static bool is_libc(const struct mapping *map)
{
	const char *name = strrchr(map->map.path, '/');

	return name && !strncmp(name, "/libc", 5);
}

/* No other C library has a file of this name. */
static bool is_glibc(const struct mapping *map)
{
	const char *name = strrchr(map->map.path, '/');

	return name && (!strncmp(name, "/libc.so.6", 10) || !strncmp(name, "/libc-2.", 8));
}

/*
 * Of a C library that is mapped the heap is not known: say why, unless a candidate has said it. Before the first call of malloc
 * there is no heap: then its arena may not even be in memory, and the break is unused.
 */
static void set_why(const struct memory *m, const struct mappings *maps, struct glibc *g)
{
	bool is_mapped = false, has_break = false;
	const struct mapping *map;

	vec_each(&maps->list, map) {
		is_mapped |= is_data(map) && is_glibc(map);
		has_break |= map->rss_bytes && !strcmp(map->map.path, "[heap]");
	}
	g->is_unread = is_mapped && has_break;
	if (memory_is_late(m))
		snprintf(g->why, sizeof(g->why), "no time was left to search for it");
	else if (!g->why[0])
		snprintf(g->why, sizeof(g->why),
			 "its main arena is of an unknown version, or partly swapped out");
}

/* The C library first: other .data may be large. */
static int scan_data(struct scan *s, uint64_t *buf)
{
	struct mapping *map;
	int err = 0;

	for (int pass = 0; pass < 2; pass++)
		vec_each(&s->maps->list, map)
			if (!err && !s->g->main_arena && is_data(map) && is_libc(map) == !pass)
				err = scan_mapping(s, map, buf);
	return err;
}

/* The top of an arena in which threads work: its header and the arena must be of one moment. */
static int read_top(struct memory *m, struct mappings *maps, struct glibc *g, struct glibc_arena *a)
{
	const uint64_t top_addr = a->addr + arena_top(g->bins_off);
	uint64_t head, again;
	int err = 0;

	for (int i = 0; i < ARENA_TRIES; i++) {
		snprintf(a->why, sizeof(a->why), "its top keeps changing");
		if (memory_read(m, top_addr, &a->top, 8) ||
		    memory_read(m, a->addr + arena_system_mem(g->bins_off), &a->system_bytes, 8))
			break;
		if (!memory_read(m, a->top + 8, &head, 8) && !memory_read(m, top_addr, &again, 8) &&
		    again == a->top) {
			a->top_bytes = head & ~CHUNK_FLAGS;
			a->why[0] = '\0';
			err = glibc_find_heaps(m, maps, g, a);
			if (err || !a->why[0])
				return err;
		}
		usleep(ARENA_PAUSE_US);
	}
	return 0;
}

int glibc_find(struct memory *m, struct mappings *maps, struct glibc *g)
{
	struct scan s = {
		.memory = m, .maps = maps, .g = g, .left_bytes = SCAN_BYTES_CAP, .window = find_main
	};
	uint64_t *buf = malloc(WINDOW_BYTES + MEMORY_PAGE);
	struct glibc_arena *a;
	struct mapping *map;
	uint64_t top;
	int err;

	if (!buf)
		return -ENOMEM;
	err = scan_data(&s, buf);
	if (!g->main_arena)
		set_why(m, maps, g);
	map = g->main_arena ? mappings_find(maps, g->main_arena) : NULL;
	if (err || !map)
		goto out;
	if (!memory_read(m, g->main_arena + arena_top(g->bins_off), &top, 8))
		g->arenas.data[0].top = top;
	s.window = find_parameters;
	s.left_bytes = SCAN_BYTES_CAP;
	s.best = HEAP_SCORE; /* less is chance */
	err = scan_mapping(&s, map, buf);
	vec_each(&g->arenas, a)
		if (!err && !a->why[0] && a->system_bytes)
			err = read_top(m, maps, g, a);
out:
	free(buf);
	return err;
}

void glibc_release(struct glibc *g)
{
	struct glibc_arena *a;
	struct glibc_heap *heap;

	vec_each(&g->arenas, a) {
		vec_each(&a->heaps, heap)
			free(heap->fast);
		vec_release(&a->heaps);
	}
	vec_release(&g->arenas);
	vec_release(&g->cache_keys);
	free(g->classes);
	g->classes = NULL;
}
