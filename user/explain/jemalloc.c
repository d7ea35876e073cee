/* SPDX-License-Identifier: MIT */
/*
 * explain/jemalloc_walk.c - what the extents of jemalloc hold: see explain/jemalloc.h.
 *
 * The leaves are read once, in the order of addresses, and each extent is accounted where it begins. What is not
 * believed in the end is given back to the mappings.
 */
#include "explain/jemalloc_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define WINDOW_BYTES (256u << 10)
#define BAD_CAP 100 /* one word, or slab, of so many may fail */
#define WALK_TRIES 4 /* of a heap in which threads work */
#define SLAB_BYTES (64u << 10) /* of slabs are read at once */
#define LATE_PAGES 4096 /* after so many it is asked how late it is */
/* Base blocks begin at multiples of 2 MiB; one in which a descriptor lies begins at most so many before it. */
#define BASE_ALIGN (2ULL << 20)
#define BASE_STEPS 64
#define BASE_MISSES 4096
#define BASE_CNT 4096

struct block {
	uint64_t addr, bytes;
};

struct walk {
	struct memory *memory;
	struct mappings *maps;
	const struct jemalloc_layout *layout;
	struct jemalloc_tree *tree;
	struct types *types;
	struct resident_pins *pins;
	char *slab; /* SLAB_BYTES, for the blocks' first words; NULL: classes are not wanted */
	uint64_t slab_addr, slab_bytes; /* what is there */
	struct jemalloc_extent extent; /* the last one */
	VEC(struct block) blocks;
	size_t last_block, miss_cnt;
	uint64_t page_cnt;
	bool is_late;
};

static uint64_t class_bytes(uint32_t class)
{
	/* 8, 16, 32, 48, 64; then four to each doubling */
	if (class < 5)
		return class ? 16ULL * class : 8;
	return (64ULL << (class - 5) / 4) + ((class - 5) % 4 + 1) * (16ULL << (class - 5) / 4);
}

void jemalloc_bin_range(uint32_t bin, uint64_t *ret_from, uint64_t *ret_to)
{
	*ret_from = bin ? class_bytes(bin - 1) + 1 : 0;
	*ret_to = class_bytes(bin);
}

static bool is_resident(struct walk *w, uint64_t page)
{
	if (++w->page_cnt % LATE_PAGES == 0)
		w->is_late |= memory_is_late(w->memory);
	return w->memory->page(w->memory->ctx, page) == PAGE_RESIDENT;
}

static void take(struct walk *w, uint64_t page)
{
	struct mapping *map = mappings_find(w->maps, page);

	if (map)
		map->taken_bytes += MEMORY_PAGE;
}

static uint64_t take_pages(struct walk *w, uint64_t addr, uint64_t bytes)
{
	uint64_t sum = 0;

	for (uint64_t end = addr + bytes; addr < end && !w->is_late; addr += MEMORY_PAGE) {
		if (!is_resident(w, addr))
			continue;
		take(w, addr);
		sum += MEMORY_PAGE;
	}
	return sum;
}

/* The block's header: its size, the next one, and a descriptor of the unused rest at its end. */
static bool base_block_at(struct walk *w, uint64_t at, struct block *ret, uint64_t *ret_next,
			  uint64_t *ret_rest)
{
	uint64_t bytes, rest_bytes;

	if (!memory_word(w->memory, at, &bytes) || !memory_word(w->memory, at + 8, ret_next) ||
	    !memory_word(w->memory, at + 16 + DESCRIPTOR_ADDR, ret_rest) ||
	    !memory_word(w->memory, at + 16 + DESCRIPTOR_SIZE, &rest_bytes))
		return false;
	*ret = (struct block){ .addr = at, .bytes = bytes };
	return bytes && bytes % MEMORY_PAGE == 0 && at < MEMORY_END && bytes <= MEMORY_END - at &&
	       *ret_rest > at && *ret_rest - at <= bytes &&
	       rest_bytes == bytes - (*ret_rest - at) && *ret_next % BASE_ALIGN == 0;
}

static bool is_known(struct walk *w, uint64_t addr)
{
	const struct block *b = w->blocks.data;

	if (w->last_block < w->blocks.cnt && addr - b[w->last_block].addr < b[w->last_block].bytes)
		return true;
	for (size_t i = 0; i < w->blocks.cnt; i++) {
		if (addr - b[i].addr >= b[i].bytes)
			continue;
		w->last_block = i;
		return true;
	}
	return false;
}

/* A descriptor or a leaf is there: the block around it is metadata, and so are those that it leads to. */
static int add_base(struct walk *w, uint64_t addr)
{
	uint64_t at = addr / BASE_ALIGN * BASE_ALIGN, next, rest;
	struct block block;
	int i = 0;

	if (is_known(w, addr) || w->miss_cnt >= BASE_MISSES)
		return 0;
	while (!base_block_at(w, at, &block, &next, &rest) || addr - at >= block.bytes) {
		at -= BASE_ALIGN;
		if (++i < BASE_STEPS && at)
			continue;
		w->miss_cnt++;
		return 0;
	}
	for (;;) {
		if (vec_push(&w->blocks, block))
			return -ENOMEM;
		w->tree->sum.base_bytes += rest - block.addr;
		w->tree->sum.own += take_pages(w, block.addr, block.bytes);
		if (!next || is_known(w, next) || w->blocks.cnt >= BASE_CNT ||
		    !base_block_at(w, next, &block, &next, &rest))
			return 0;
	}
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static bool is_free(const uint64_t *bitmap, uint64_t region)
{
	return bitmap[region / 64] >> region % 64 & 1;
}

/* Bytes of live regions from `from` to `end`, both counted from the slab's start. */
static uint64_t live_between(const uint64_t *bitmap, uint64_t region_bytes, uint64_t from,
			     uint64_t end)
{
	uint64_t bytes = 0;

	for (uint64_t i = from / region_bytes; i * region_bytes < end; i++)
		if (!is_free(bitmap, i))
			bytes += least(end, (i + 1) * region_bytes) - most(from, i * region_bytes);
	return bytes;
}

static bool read_bitmap(struct walk *w, const struct jemalloc_extent *e, uint64_t region_cnt,
			uint64_t *bitmap)
{
	uint64_t free_cnt = 0;

	for (uint64_t i = 0; i * 64 < region_cnt; i++)
		if (!memory_word(w->memory, e->descriptor + DESCRIPTOR_BITMAP + 8 * i, &bitmap[i]))
			return false;
	for (uint64_t i = 0; i < region_cnt; i++)
		free_cnt += is_free(bitmap, i);
	return free_cnt == e->free_cnt;
}

/* The class of a live block in a slab. */
static void charge_type(struct walk *w, uint64_t addr, uint64_t bytes, double pinned_bytes)
{
	uint64_t word;
	uint32_t type;

	if (addr - w->slab_addr >= w->slab_bytes) {
		w->slab_addr = page_down(addr);
		w->slab_bytes = memory_window(w->memory, w->slab_addr, w->slab, SLAB_BYTES);
		if (addr - w->slab_addr >= w->slab_bytes)
			return;
	}
	memcpy(&word, w->slab + (addr - w->slab_addr), sizeof(word));
	type = types_find(w->types, word);
	types_add(w->types, type, bytes);
	types_pin(w->types, type, pinned_bytes);
}

/* Each live block of the slab is charged with an equal part of what is free. */
static void charge_slab(struct walk *w, const struct jemalloc_extent *e, const uint64_t *bitmap,
			uint64_t region_bytes, double free_each)
{
	for (uint64_t i = 0; (w->slab || w->pins) && i * region_bytes < e->bytes; i++) {
		const uint64_t addr = e->addr + i * region_bytes;

		if (is_free(bitmap, i))
			continue;
		resident_pins_add(w->pins, resident_pins_found(w->pins, addr), free_each);
		if (w->slab)
			charge_type(w, addr, region_bytes, free_each);
	}
}

/* A block of its own pages begins anywhere on the first, and pins nothing. */
static void add_large(struct walk *w, const struct jemalloc_extent *e)
{
	uint64_t first, word;

	if ((!w->types && !w->pins) ||
	    !memory_word(w->memory, e->descriptor + DESCRIPTOR_ADDR, &first))
		return;
	(void)resident_pins_found(w->pins, first);
	if (w->types && !memory_read(w->memory, first, &word, sizeof(word)))
		types_add(w->types, types_find(w->types, word),
			  least(class_bytes(e->class), e->bytes));
}

static void account_slab(struct walk *w, const struct jemalloc_extent *e)
{
	uint64_t region_bytes = class_bytes(e->class), region_cnt = e->bytes / region_bytes;
	struct jemalloc_sum *sum = &w->tree->sum;
	struct jemalloc_bin *bin = &sum->bins[e->class];
	uint64_t bitmap[REGIONS_CAP / 64] = { 0 }, live_cnt, free_bytes = 0;

	w->tree->slab_cnt++;
	if (region_cnt > REGIONS_CAP || e->bytes % region_bytes || e->free_cnt > region_cnt ||
	    !read_bitmap(w, e, region_cnt, bitmap)) {
		w->tree->bad_slab_cnt++;
		return;
	}
	live_cnt = region_cnt - e->free_cnt;
	sum->live_cnt += live_cnt;
	sum->live_bytes += live_cnt * region_bytes;
	bin->slab_cnt++;
	bin->region_cnt += region_cnt;
	bin->live_cnt += live_cnt;
	for (uint64_t at = 0; at < e->bytes; at += MEMORY_PAGE) {
		uint64_t live;

		if (!is_resident(w, e->addr + at))
			continue;
		live = live_between(bitmap, region_bytes, at, at + MEMORY_PAGE);
		take(w, e->addr + at);
		sum->live += live;
		sum->pinned += MEMORY_PAGE - live;
		free_bytes += MEMORY_PAGE - live;
	}
	bin->pinned_bytes += free_bytes;
	if (live_cnt)
		charge_slab(w, e, bitmap, region_bytes, (double)free_bytes / (double)live_cnt);
}

static void account(struct walk *w, const struct jemalloc_extent *e)
{
	struct jemalloc_sum *sum = &w->tree->sum;

	switch (e->state) {
	case STATE_ACTIVE:
		sum->active_bytes += e->bytes;
		if (e->is_slab) {
			account_slab(w, e);
			break;
		}
		sum->live_cnt++;
		sum->live_bytes += least(class_bytes(e->class), e->bytes);
		sum->live += take_pages(w, e->addr, e->bytes);
		add_large(w, e);
		break;
	case STATE_DIRTY:
		sum->dirty_bytes += e->bytes;
		sum->dirty += take_pages(w, e->addr, e->bytes);
		break;
	case STATE_MUZZY:
		sum->muzzy_bytes += e->bytes;
		sum->dirty += take_pages(w, e->addr, e->bytes);
		break;
	case STATE_RETAINED:
		sum->retained_bytes += e->bytes;
		for (uint64_t at = 0; at < e->bytes && !w->is_late; at += MEMORY_PAGE)
			sum->retained += is_resident(w, e->addr + at) * MEMORY_PAGE;
		break;
	default: /* on its way from one to another */
		break;
	}
}

/* The first and the last page of an extent have a word, and all pages of a slab. */
static int visit_word(struct walk *w, uint64_t word_addr, uint64_t word, uint64_t addr)
{
	const struct jemalloc_extent *last = &w->extent;
	struct jemalloc_extent e = { 0 };

	w->tree->word_cnt++;
	if (addr < last->addr + last->bytes &&
	    (word & w->layout->descriptor_mask) == last->descriptor)
		return 0;
	if (!jemalloc_extent_now(w->memory, w->layout, word_addr, word, addr, &e)) {
		w->tree->bad_cnt++;
		return 0;
	}
	if (!e.bytes)
		return 0; /* it is 0 by now */
	if (e.addr != addr || addr < last->addr + last->bytes) {
		w->tree->bad_cnt++; /* not the first page of it */
		return 0;
	}
	w->extent = e;
	account(w, &e);
	return add_base(w, e.descriptor);
}

static int walk_leaf(struct walk *w, uint64_t leaf, uint64_t index, uint64_t *window)
{
	int err = add_base(w, leaf);

	for (uint64_t at = leaf, bytes; !err && at < leaf + TREE_BYTES; at += bytes) {
		uint64_t from = page_down(at), off = at - from, got;

		bytes = least(WINDOW_BYTES - off, leaf + TREE_BYTES - at);
		got = memory_window(w->memory, from, window, page_up(off + bytes));
		w->is_late |= memory_is_late(w->memory);
		if (w->is_late)
			return 0;
		if (got < off + bytes)
			w->tree->bad_cnt++;
		got = got > off ? least(got - off, bytes) : 0;
		for (uint64_t i = 0; !err && i < got / 8; i++) {
			uint64_t page = (at - leaf) / 8 + i;

			if (window[off / 8 + i] & w->layout->descriptor_mask)
				err = visit_word(w, at + 8 * i, window[off / 8 + i],
						 (index << LEAF_SPAN_BITS) + page * MEMORY_PAGE);
		}
	}
	return err;
}

/* Believe the tree, or give back what it took. */
static void judge(struct walk *w)
{
	struct jemalloc_tree *t = w->tree;

	if (w->is_late || memory_is_late(w->memory))
		snprintf(t->why, sizeof(t->why), "it took too long to read");
	else if (t->bad_cnt > t->word_cnt / BAD_CAP)
		snprintf(t->why, sizeof(t->why), "%llu of %llu pages contradict their descriptor",
			 (unsigned long long)t->bad_cnt, (unsigned long long)t->word_cnt);
	else if (t->bad_slab_cnt > t->slab_cnt / BAD_CAP)
		snprintf(t->why, sizeof(t->why), "%llu of %llu slabs contradict their bitmap",
			 (unsigned long long)t->bad_slab_cnt, (unsigned long long)t->slab_cnt);
	else
		t->is_proved = true;
	types_settle(w->types, t->is_proved);
}

static void give_back(struct mappings *maps, const uint64_t *taken)
{
	for (size_t i = 0; i < maps->list.cnt; i++)
		maps->list.data[i].taken_bytes = taken[i];
}

static int walk_tree(struct walk *w)
{
	uint64_t *root = malloc(TREE_BYTES + MEMORY_PAGE), *window = malloc(WINDOW_BYTES);
	uint64_t *taken = calloc(w->maps->list.cnt, sizeof(*taken));
	uint64_t off = w->tree->root % MEMORY_PAGE / 8, bytes = TREE_BYTES + MEMORY_PAGE;
	int err;

	w->slab = w->types ? malloc(SLAB_BYTES) : NULL;
	err = root && window && taken && (w->slab || !w->types) ? 0 : -ENOMEM;
	if (err)
		goto out;
	for (size_t i = 0; i < w->maps->list.cnt; i++)
		taken[i] = w->maps->list.data[i].taken_bytes;
	memory_forget(w->memory);
	if (memory_window(w->memory, page_down(w->tree->root), root, bytes) != bytes)
		w->tree->bad_cnt++;
	else
		for (uint64_t i = 0; i < TREE_WORDS && !err && !w->is_late; i++)
			if (root[off + i])
				err = walk_leaf(w, root[off + i], i, window);
	judge(w);
	if (err || !w->tree->is_proved)
		give_back(w->maps, taken);
out:
	free(root);
	free(window);
	free(taken);
	free(w->slab);
	vec_release(&w->blocks);
	return err;
}

/* All members of a sum are counters. */
static void add_sum(struct jemalloc_sum *to, const struct jemalloc_sum *s)
{
	uint64_t *sums = (uint64_t *)to;

	for (size_t i = 0; i < sizeof(*to) / sizeof(*sums); i++)
		sums[i] += ((const uint64_t *)s)[i];
}

static bool is_library(const struct mapping *map)
{
	const char *name = strrchr(map->map.path, '/');

	return name && !strncmp(name, "/libjemalloc", 12);
}

int jemalloc_read(struct memory *m, struct mappings *maps, struct jemalloc *je)
{
	const uint64_t deadline_ns = m->deadline_ns, start_ns = now_ns();
	const struct jemalloc_layout *layout;
	struct mapping *map;
	uint64_t from = 0, root;
	int err = 0;

	vec_each(&maps->list, map)
		je->is_mapped |= is_library(map);
	/* what comes after it needs time too */
	if (start_ns < deadline_ns)
		m->deadline_ns = start_ns + (deadline_ns - start_ns) / 2;
	memory_forget(m);
	while (!err && je->tree_cnt < JEMALLOC_TREE_CNT) {
		struct jemalloc_tree *t = &je->trees[je->tree_cnt];
		struct walk w = { .memory = m, .maps = maps, .tree = t };

		err = jemalloc_find(m, maps, &from, &root, &layout);
		if (err)
			break;
		for (int i = 0; !err && !t->is_proved && !w.is_late && i < WALK_TRIES; i++) {
			*t = (struct jemalloc_tree){ .root = root, .version = layout->version };
			w = (struct walk){ .memory = m,
					   .maps = maps,
					   .tree = t,
					   .types = je->types,
					   .pins = je->pins,
					   .layout = layout };
			err = walk_tree(&w);
		}
		je->tree_cnt++;
		if (t->is_proved)
			add_sum(&je->sum, &t->sum);
	}
	m->deadline_ns = deadline_ns;
	return err == -ENOENT ? 0 : err;
}
