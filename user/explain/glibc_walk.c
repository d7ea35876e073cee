/* SPDX-License-Identifier: MIT */
/*
 * explain/glibc_walk.c - counts the chunks of malloc's heaps, live and free, by going from each to the next (see
 * explain/glibc.h).
 *
 * The process runs on, so a window of memory may show half of an update. It is read at once, its chunks are checked to
 * the end, and only then they are counted. Where the chain breaks, the window is read again. If that does not help,
 * the chunk was merged into another one: the walk goes back to an earlier chunk and tries again, or goes on at the
 * next place from which a chain of CHAIN_CNT chunks begins. The bytes between are unknown. Each round gets further, so
 * a walk ends.
 */

#include "explain/glibc_priv.h"

/*
 * The lists of free chunks: bins, fastbins, the caches of threads.
 *
 * A list that a thread changes while it is followed may lead round and round, or anywhere. So each step is checked, and
 * the number of steps has a bound.
 */

#define BINS_CAP \
	(1u      \
	 << 18) /* chunks in all of an arena's: they are anywhere in it, so each costs a reading */
#define KEY_CHUNKS 16 /* of a heap's first ones, which may be a cache */
#define KEY_CHUNKS_2_43 (1u << 20) /* of all heaps: there it is made by a thread's first free() */
#define CACHE_WORDS 95 /* of the largest one */
#define KEY_CNT 8 /* different ones that are remembered */
#define THREAD_KEYS_CAP 65536

static struct glibc_heap *glibc_heap_of(struct glibc_arena *a, uint64_t addr)
{
	struct glibc_heap *heap;

	vec_each(&a->heaps, heap)
		if (addr >= heap->first_chunk && addr < heap->end)
			return heap;
	return NULL;
}

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

/* Count the chunks in bins. */
static void glibc_read_bins(struct memory *m, struct glibc_arena *a, uint32_t bins_off)
{
	uint64_t left = a->system_bytes / CHUNK_MIN;

	left = left < BINS_CAP ? left : BINS_CAP;
	a->bins_are_read = true;
	for (uint32_t i = 0; i < GLIBC_BIN_CNT; i++)
		if (!read_bin(m, a, a->addr + bins_off + 16ULL * i - 16, &left))
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

/* Mark the chunks in fastbins. -ENOMEM. */
static int glibc_read_fast(struct memory *m, struct glibc_arena *a, uint32_t bins_off)
{
	if (bins_off == ARENA_BINS_2_43)
		return 0;
	for (uint64_t i = 0; i < GLIBC_FAST_CNT; i++) {
		const uint64_t bytes = CHUNK_MIN + 16 * i;
		struct glibc_heap *heap;
		bool is_new = true;
		uint64_t at;

		if (!memory_word(m, a->addr + arena_fast(bins_off) + 8 * i, &at) || !at)
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

/* struct tcache_perthread_struct, the cache of a thread, by the size of its chunk. */
struct cache_layout {
	uint32_t chunk_bytes; /* or 16 more */
	uint32_t list_cnt,
		entries_word; /* the first blocks of the lists begin at this word; before them stands... */
	bool has_room; /* ... how many more blocks a list may have, not how many it has */
};
static const struct cache_layout cache_layouts[] = {
	{ 0x290, 64, 16, false }, /* 2.30 to 2.41 */
	{ 0x300, 76, 19, true }, /* from 2.42 on */
};

static const struct cache_layout *cache_layout_of(uint64_t chunk_bytes)
{
	for (size_t i = 0; i < sizeof(cache_layouts) / sizeof(*cache_layouts); i++)
		if (chunk_bytes == cache_layouts[i].chunk_bytes ||
		    chunk_bytes == cache_layouts[i].chunk_bytes + 16)
			return &cache_layouts[i];
	return NULL;
}

/* Is it the cache of a thread? words: what is in its chunk. *ret_cnt: blocks in it. */
static bool is_cache(const struct glibc *g, const uint64_t *words, const struct cache_layout *l,
		     uint64_t *ret_cnt)
{
	const uint64_t cap = g->parameters.is_known ? g->parameters.cache_cap : 7;
	const uint16_t *cnts = (const uint16_t *)words;

	*ret_cnt = 0;
	for (size_t i = 0; i < l->list_cnt; i++) {
		uint64_t entry = words[l->entries_word + i], cnt = cnts[i];

		if (cnt > cap)
			return false;
		if (l->has_room)
			cnt = cap - cnt;
		if (!cnt != !entry || entry % 16 || entry >= MEMORY_END)
			return false;
		*ret_cnt += cnt;
	}
	return true;
}

/* The keys of cached blocks that the caches at the beginning of the heaps lead to. */
struct key_votes {
	uint64_t keys[KEY_CNT];
	uint32_t votes[KEY_CNT];
	uint32_t left; /* chunks that are looked at */
};

/*
 * The word behind a cached block's first is the key. From 2.34 on it is one number for all, before it is the address of the
 * cache.
 */
static int vote(struct memory *m, struct glibc *g, uint64_t cache, const uint64_t *words,
		const struct cache_layout *l, struct key_votes *v)
{
	bool is_own = false;

	for (size_t i = 0; i < l->list_cnt; i++) {
		uint64_t entry = words[l->entries_word + i], key;
		size_t k = 0;

		if (!entry || !memory_word(m, entry + 8, &key) || !key)
			continue;
		is_own |= key == cache;
		while (k < KEY_CNT && v->votes[k] && v->keys[k] != key)
			k++;
		if (k < KEY_CNT) {
			v->keys[k] = key;
			v->votes[k]++;
		}
	}
	return is_own && g->cache_keys.cnt < THREAD_KEYS_CAP ? vec_push(&g->cache_keys, cache) : 0;
}

/* Is one cache enough? Of older ones there may be several keys. */
static bool has_key(const struct glibc *g, const struct key_votes *v)
{
	return g->bins_off == ARENA_BINS_2_43 && v->votes[0];
}

static int look_for_caches(struct memory *m, struct glibc *g, const struct glibc_heap *heap,
			   struct key_votes *v)
{
	uint64_t at = heap->first_chunk, head, words[CACHE_WORDS], cnt;
	int err = 0;

	for (; v->left && !has_key(g, v) && !err && memory_word(m, at + 8, &head); v->left--) {
		uint64_t bytes = head & ~CHUNK_FLAGS;
		const struct cache_layout *l = cache_layout_of(bytes);

		if (bytes < CHUNK_MIN || bytes % 16 || bytes >= heap->end - at)
			break;
		if (l && !memory_read(m, at + 16, words, sizeof(words)) &&
		    is_cache(g, words, l, &cnt))
			err = vote(m, g, at + 16, words, l, v);
		at += bytes;
	}
	return err;
}

static int compare_keys(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Learn the key, or the keys. -ENOMEM. */
static int glibc_learn_key(struct memory *m, struct glibc *g)
{
	struct key_votes v = { 0 };
	uint32_t all = 0, best = 0;
	struct glibc_arena *a;
	struct glibc_heap *heap;
	int err = 0;

	v.left = KEY_CHUNKS_2_43;
	vec_each(&g->arenas, a) {
		if (g->bins_off != ARENA_BINS_2_43)
			v.left = KEY_CHUNKS; /* of each */
		vec_each(&a->heaps, heap)
			if (!err && (heap == a->heaps.data || g->bins_off == ARENA_BINS_2_43))
				err = look_for_caches(m, g, heap, &v);
	}
	for (uint32_t i = 0; i < KEY_CNT; i++) {
		all += v.votes[i];
		if (v.votes[i] > v.votes[best])
			best = i;
	}
	vec_sort(&g->cache_keys, compare_keys);
	if (!g->cache_keys.cnt && v.votes[best] * 2 > all)
		g->cache_key = v.keys[best];
	return err;
}

static inline bool is_key(const struct glibc *g, uint64_t word)
{
	if (!g->cache_keys.cnt)
		return g->cache_key && word == g->cache_key;
	return word % 16 == 0 && word >= g->cache_keys.data[0] &&
	       bsearch(&word, g->cache_keys.data, g->cache_keys.cnt, sizeof(word), compare_keys);
}

#define WINDOW_BYTES (256u << 10)
#define WINDOW_TRIES 6
#define WINDOW_PAUSE_US 20
#define CHAIN_CNT 12
#define RECENT_CNT 256 /* power of two */
#define PIECES_CAP (WINDOW_BYTES / 16)
#define UNKNOWN_CAP 50 /* an arena is believed if less than a 50th of it is unknown */

struct piece { /* half a line of the processor's cache */
	uint64_t addr, bytes;
	uint32_t cached_cnt; /* of a cache */
	uint32_t type; /* of a live block */
	uint8_t use; /* enum heap_use */
	bool is_fast;
};

struct walk {
	struct memory *memory;
	struct mappings *maps;
	struct glibc *g;
	struct glibc_arena *arena;
	struct glibc_heap *heap;
	struct heap_pages pages;
	bool has_top; /* this heap */
	uint64_t at, end; /* of the chunks: the top, or the heap's end */
	char *buf;
	uint64_t buf_addr, buf_bytes;
	struct piece *pieces;
	size_t piece_cnt;
	uint64_t recent[RECENT_CNT]; /* chunks that were counted */
	uint64_t recent_cnt;
	bool was_fence; /* the last one: what follows may be somebody else's sbrk() */
	uint64_t first_unknown;
};

enum step { STEP_CHUNK, STEP_OUTSIDE, STEP_BROKEN };

static void load(struct walk *w, uint64_t at)
{
	uint64_t end = page_up(w->end + 16);

	w->buf_addr = page_down(at);
	w->buf_bytes = end - w->buf_addr < WINDOW_BYTES ? end - w->buf_addr : WINDOW_BYTES;
	w->buf_bytes = memory_window(w->memory, w->buf_addr, w->buf, w->buf_bytes);
}

static bool is_inside(const struct walk *w, uint64_t at, uint64_t bytes)
{
	return at >= w->buf_addr && at + bytes <= w->buf_addr + w->buf_bytes;
}

static const uint64_t *words_at(const struct walk *w, uint64_t at)
{
	return (const uint64_t *)(w->buf + (at - w->buf_addr));
}

static bool is_fast(const struct glibc_heap *heap, uint64_t at)
{
	uint64_t bit = (at - page_down(heap->addr)) / 16;

	return heap->fast && at < heap->end && heap->fast[bit / 64] >> bit % 64 & 1;
}

/* A header of size 16 ends memory that goes on elsewhere; one of size 0 is at the end of a full heap. */
static bool is_fence(uint64_t head)
{
	return (head & ~CHUNK_PREV_IN_USE & ~CHUNK_NOT_MAIN) == 16;
}

static inline bool is_head(const struct walk *w, uint64_t at, uint64_t head)
{
	uint64_t bytes = head & ~CHUNK_FLAGS;

	if (head & CHUNK_MMAPPED || (w->arena->is_main && head & CHUNK_NOT_MAIN))
		return false;
	if (is_fence(head))
		return w->end - at >= 16;
	return bytes >= CHUNK_MIN && bytes % 16 == 0 && bytes <= w->end - at;
}

/* The header behind a chunk that ends outside of the window, and the chunk's own again: both of one moment. */
static bool read_far(struct walk *w, uint64_t at, uint64_t head, uint64_t next, uint64_t ret[2])
{
	uint64_t again;

	return !memory_read(w->memory, next, ret, 16) &&
	       !memory_read(w->memory, at + 8, &again, 8) && again == head;
}

static inline enum heap_use use_of(const struct walk *w, const uint64_t *words, struct piece *ret)
{
	const struct cache_layout *l = cache_layout_of(ret->bytes);
	uint64_t cnt;

	if (is_fast(w->heap, ret->addr)) {
		ret->is_fast = true;
		return HEAP_FREE;
	}
	if (is_key(w->g, words[3]))
		return HEAP_CACHED;
	if (l && is_inside(w, ret->addr + 16, l->chunk_bytes - 16) &&
	    is_cache(w->g, words + 2, l, &cnt) && cnt) { /* zeroes are the program's */
		ret->cached_cnt = (uint32_t)cnt;
		return HEAP_OWN;
	}
	ret->type = types_find(w->g->types, words[2]);
	return HEAP_LIVE;
}

/* Look at the chunk at `at`, which is below w->end. */
static inline enum step read_piece(struct walk *w, uint64_t at, struct piece *ret)
{
	uint64_t head, next, behind[2];
	const uint64_t *words;

	if (!is_inside(w, at, 16))
		return STEP_OUTSIDE;
	words = words_at(w, at);
	head = words[1];
	*ret = (struct piece){ .addr = at, .bytes = head & ~CHUNK_FLAGS, .use = HEAP_OWN };
	if (is_fence(head) || (!(head & ~CHUNK_PREV_IN_USE) && w->end - at == 16)) {
		ret->bytes = 16;
		return STEP_CHUNK;
	}
	if (!is_head(w, at, head))
		return STEP_BROKEN;
	if (!is_inside(w, at, CHUNK_MIN))
		return STEP_OUTSIDE;
	next = at + ret->bytes;
	if (next == w->end && !w->has_top) {
		ret->use = use_of(w, words, ret);
		return STEP_CHUNK;
	}
	if (is_inside(w, next, 16))
		memcpy(behind, words_at(w, next), 16);
	else if (ret->bytes < WINDOW_BYTES / 2)
		return STEP_OUTSIDE;
	else if (!read_far(w, at, head, next, behind))
		return STEP_BROKEN;
	if (next < w->end && behind[1] & ~CHUNK_PREV_IN_USE && !is_head(w, next, behind[1]))
		return STEP_BROKEN;
	if (behind[1] & CHUNK_PREV_IN_USE) {
		ret->use = use_of(w, words, ret);
		return STEP_CHUNK;
	}
	ret->use = HEAP_FREE;
	return behind[0] == ret->bytes ? STEP_CHUNK : STEP_BROKEN;
}

/* Read the window, and its chunks up to the last one that can be checked. true: the chain does not break. */
static bool read_window(struct walk *w)
{
	uint64_t at = w->at;
	enum step step = STEP_CHUNK;

	load(w, at);
	w->piece_cnt = 0;
	while (at < w->end && w->piece_cnt < PIECES_CAP) {
		step = read_piece(w, at, &w->pieces[w->piece_cnt]);
		if (step != STEP_CHUNK)
			break;
		at += w->pieces[w->piece_cnt++].bytes;
	}
	return step != STEP_BROKEN;
}

static inline void count_piece(struct walk *w, const struct piece *p)
{
	struct glibc_arena *a = w->arena;

	w->pages.type = p->type;
	heap_pages_add(&w->pages, p->addr, p->bytes, p->use);
	if (p->is_fast)
		a->walked_fast_cnt++;
	a->cached_cnt += p->cached_cnt;
	if (p->use == HEAP_UNKNOWN && !w->first_unknown)
		w->first_unknown = p->addr;
	w->was_fence = a->is_main && p->use == HEAP_OWN && p->bytes == 16;
	w->at = p->addr + p->bytes;
}

static void count_pieces(struct walk *w)
{
	for (size_t i = 0; i < w->piece_cnt; i++) {
		count_piece(w, &w->pieces[i]);
		w->recent[w->recent_cnt++ % RECENT_CNT] = w->pieces[i].addr;
	}
}

static void skip_to(struct walk *w, uint64_t to)
{
	const struct piece gap = { .addr = w->at,
				   .bytes = to - w->at,
				   .use = w->was_fence ? HEAP_FOREIGN : HEAP_UNKNOWN };

	count_piece(w, &gap);
}

/*
 * The end of a chain from `from`: behind `beyond`, or, with beyond 0, after CHAIN_CNT chunks. 0: it breaks before. Any
 * number 16 looks like a fence, so no such chain has one.
 */
static uint64_t follow(struct walk *w, uint64_t from, uint64_t beyond)
{
	struct piece p;
	uint64_t at = from;

	for (int i = 0; at < w->end && i < (beyond ? RECENT_CNT : CHAIN_CNT); i++) {
		enum step step = read_piece(w, at, &p);

		if (step == STEP_BROKEN || (step == STEP_CHUNK && !beyond && p.bytes == 16))
			return 0;
		if (step == STEP_OUTSIDE)
			return beyond ? 0 : at;
		at += p.bytes;
		if (beyond && at > beyond)
			return at;
	}
	return at;
}

/* Chunks before this one may be larger by now. */
static bool go_back(struct walk *w)
{
	uint64_t kept = w->recent_cnt < RECENT_CNT ? w->recent_cnt : RECENT_CNT;

	for (uint64_t i = 1; i <= kept; i++) {
		uint64_t from = w->recent[(w->recent_cnt - i) % RECENT_CNT], to;

		if (w->at - from > WINDOW_BYTES / 2)
			return false;
		if (!is_inside(w, from, 16) || w->buf_addr + w->buf_bytes < w->at + 4096)
			load(w, from);
		to = follow(w, from, w->at);
		if (to > w->at) {
			skip_to(w, to);
			return true;
		}
	}
	return false;
}

static void go_on(struct walk *w)
{
	uint64_t at = w->at + 16;

	load(w, at);
	for (; at < w->end; at += 16) {
		if (!is_inside(w, at, WINDOW_BYTES / 2) && page_down(at) != w->buf_addr)
			load(w, at); /* a chain needs room */
		if (!is_inside(w, at, CHUNK_MIN))
			at = page_up(at + 16) - 16; /* cannot be read */
		else if (follow(w, at, 0) > at)
			break;
	}
	skip_to(w, at < w->end ? at : w->end);
}

/* The top moves when a thread allocates. That of another arena may move to a new heap: then this one ends where it did. */
static void read_end(struct walk *w)
{
	struct glibc_arena *a = w->arena;
	uint64_t top, head;

	if (!w->has_top || memory_read(w->memory, a->addr + arena_top(w->g->bins_off), &top, 8) ||
	    top % 16 || top < w->heap->first_chunk ||
	    (!a->is_main && (top ^ a->top) / GLIBC_HEAP_MAX) ||
	    memory_read(w->memory, top + 8, &head, 8))
		return;
	a->top = top;
	a->top_bytes = head & ~CHUNK_FLAGS;
	w->end = top > w->at ? top : w->at;
}

static void walk_heap(struct walk *w)
{
	while (w->at < w->end && !memory_is_late(w->memory)) {
		for (int i = 0; i < WINDOW_TRIES; i++) {
			read_end(w);
			if (read_window(w))
				break;
			usleep(WINDOW_PAUSE_US);
		}
		count_pieces(w);
		if (!w->piece_cnt && w->at < w->end && (w->was_fence || !go_back(w)))
			go_on(w);
	}
	if (w->at < w->end)
		skip_to(w, w->end);
}

/* Nobody has moved the break behind it. The heap may have grown since smaps was read. */
static bool top_is_given(struct walk *w)
{
	struct glibc_arena *a = w->arena;
	struct mapping *map = mappings_find(w->maps, w->heap->addr);

	return a->is_main && map && map->map.end_addr <= page_up(a->top + a->top_bytes);
}

static void walk_heaps(struct walk *w)
{
	struct glibc_arena *a = w->arena;

	for (size_t i = 0; i < a->heaps.cnt; i++) {
		w->heap = &a->heaps.data[i];
		w->has_top = i == a->heaps.cnt - 1;
		w->at = w->heap->first_chunk;
		w->end = w->has_top ? a->top : w->heap->end;
		w->recent_cnt = 0;
		w->was_fence = false;
		if (w->at > w->heap->addr)
			heap_pages_add(&w->pages, w->heap->addr, w->at - w->heap->addr, HEAP_OWN);
		walk_heap(w);
		w->pages.top_is_given = w->has_top && top_is_given(w);
		if (w->has_top && w->at >= a->top && w->at < a->top + a->top_bytes)
			heap_pages_add(&w->pages, w->at, a->top + a->top_bytes - w->at, HEAP_TOP);
		heap_pages_end(&w->pages);
	}
}

static void heap_sum_add(struct heap_sum *to, const struct heap_sum *s)
{
	for (size_t i = 0; i < HEAP_USE_CNT; i++) {
		to->cnt[i] += s->cnt[i];
		to->bytes[i] += s->bytes[i];
	}
	to->live += s->live;
	to->trim += s->trim;
	to->trim_top += s->trim_top;
	to->pinned += s->pinned;
	to->kept += s->kept;
	to->own += s->own;
	to->unknown += s->unknown;
}

/* Believe what was found, or call all of it unknown. */
static void judge(struct walk *w, const struct heap_class *classes)
{
	struct glibc_arena *a = w->arena;
	uint64_t unknown = a->sum.bytes[HEAP_UNKNOWN];

	if (memory_is_late(w->memory))
		snprintf(a->why, sizeof(a->why), "reading it took too long");
	else if (unknown > a->system_bytes / UNKNOWN_CAP)
		snprintf(a->why, sizeof(a->why), "%llu bytes from %#llx on are not valid chunks",
			 (unsigned long long)unknown, (unsigned long long)w->first_unknown);
	a->is_proved = !a->why[0];
	types_settle(w->g->types, a->is_proved);
	if (!a->is_proved) {
		uint64_t resident = heap_sum_resident(&a->sum);

		a->sum = (struct heap_sum){ .unknown = resident };
		return;
	}
	heap_sum_add(&w->g->sum, &a->sum);
	for (size_t i = 0; i < HEAP_CLASS_CNT; i++) {
		w->g->classes[i].live_cnt += classes[i].live_cnt;
		w->g->classes[i].live_bytes += classes[i].live_bytes;
		w->g->classes[i].pinned_bytes += classes[i].pinned_bytes;
		w->g->classes[i].alone_bytes += classes[i].alone_bytes;
		w->g->classes[i].recorded.cnt += classes[i].recorded.cnt;
		w->g->classes[i].recorded.variance += classes[i].recorded.variance;
	}
}

static int walk_arena(struct walk *w, struct glibc_arena *a, struct heap_class *classes)
{
	struct glibc_heap *heap;
	int err;

	memset(classes, 0, HEAP_CLASS_CNT * sizeof(*classes));
	w->arena = a;
	w->pages = (struct heap_pages){ .memory = w->memory,
					.maps = w->maps,
					.sum = &a->sum,
					.classes = classes,
					.types = w->g->types,
					.pins = w->g->pins,
					.top_step = MEMORY_PAGE };
	if (w->g->parameters.thp_bytes > MEMORY_PAGE)
		w->pages.top_step = w->g->parameters.thp_bytes;
	w->first_unknown = 0;
	memory_forget(w->memory);
	glibc_read_bins(w->memory, a, w->g->bins_off);
	memory_forget(w->memory);
	err = glibc_read_fast(w->memory, a, w->g->bins_off);
	if (!err)
		walk_heaps(w);
	if (!err)
		judge(w, classes);
	vec_each(&a->heaps, heap) {
		free(heap->fast);
		heap->fast = NULL;
	}
	return err;
}

int glibc_walk(struct memory *m, struct mappings *maps, struct glibc *g)
{
	struct walk w = { .memory = m, .maps = maps, .g = g };
	struct heap_class *classes = calloc(HEAP_CLASS_CNT, sizeof(*classes));
	struct glibc_arena *a;
	int err = -ENOMEM;

	g->classes = calloc(HEAP_CLASS_CNT, sizeof(*g->classes));
	w.buf = malloc(WINDOW_BYTES);
	w.pieces = malloc(PIECES_CAP * sizeof(*w.pieces));
	if (!classes || !g->classes || !w.buf || !w.pieces)
		goto out;
	memory_forget(m);
	err = glibc_learn_key(m, g);
	vec_each(&g->arenas, a)
		if (!err && a->heaps.cnt && !a->why[0])
			err = walk_arena(&w, a, classes);
	if (!err) {
		glibc_walk_mmapped(m, maps, g);
		heap_sum_add(&g->sum, &g->mmapped);
	}
out:
	free(classes);
	free(w.buf);
	free(w.pieces);
	return err;
}
