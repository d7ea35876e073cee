/* SPDX-License-Identifier: MIT */
/*
 * explain/jemalloc.c - finds the trees of jemalloc in memory, and counts their extents, live and free (see
 * explain/jemalloc.h).
 *
 * A word in .bss is tried if it points to a leaf: the descriptors that the leaf names say of which GiB it is, and so
 * where the root would begin. Other words point to leaves too, so all 2^18 words of the root are checked.
 *
 * The leaves are read once, in the order of addresses, and each extent is accounted where it begins. Memory of a tree
 * that fails a check at the end counts as its mappings again.
 */
#include "explain/jemalloc.h"

#include "base/clock.h"

#define TREE_WORDS (1ULL << 18) /* of the root, and of each leaf */
#define TREE_BYTES (TREE_WORDS * 8)
#define LEAF_SPAN_BITS 30 /* addresses of a leaf */
#define WINDOW_BYTES (256u << 10)
#define LEAF_WINDOW (64u << 10)
#define LEAF_TRIES 16 /* words of a leaf that are checked before all are */
#define LEAF_BAD_CAP 2
#define LEAF_ALIGN 64
#define CLASS_CNT 232
#define FIRST_TRIES 4
#define WORD_TRIES 3
#define LEAVES_CAP 65536 /* of one root */
#define SEARCH_BYTES_CAP (1ULL << 30) /* of what may be roots and leaves in one .bss */

/* The first word of an extent's descriptor. Its address and its size follow; its bitmap is at DESCRIPTOR_BITMAP. */
struct jemalloc_layout {
	const char *version;
	uint64_t descriptor_mask; /* of a word of a leaf */
	bool word_has_state;
	uint32_t state_shift, state_mask, class_shift, free_shift;
};
static const struct jemalloc_layout jemalloc_layouts[] = {
	{ "5.3", 0xffffffffff80, true, 17, 7, 20, 28 },
	{ "5.2", 0xffffffffffc0, false, 16, 3, 18, 26 },
};

#define DESCRIPTOR_ADDR 8
#define DESCRIPTOR_SIZE 16
#define DESCRIPTOR_BITMAP 64 /* a bit for each free region */
#define REGIONS_CAP 512

enum jemalloc_state { STATE_ACTIVE, STATE_DIRTY, STATE_MUZZY, STATE_RETAINED };

struct jemalloc_extent {
	uint64_t descriptor, addr, bytes; /* its pages */
	uint32_t state, class, free_cnt; /* free_cnt: regions, of a slab */
	bool is_slab;
};

/* Does a word of a leaf, which is for the page at addr, agree with the descriptor that it names? */
static bool jemalloc_extent_of(struct memory *m, const struct jemalloc_layout *l, uint64_t word,
			       uint64_t addr, struct jemalloc_extent *ret)
{
	uint64_t at = word & l->descriptor_mask, bits, first, bytes;

	/* bits between the flags and the address would be another layout's */
	if (!l->word_has_state && word & (LEAF_ALIGN - 1) & ~1ULL)
		return false;
	if (!memory_word(m, at, &bits) || !memory_word(m, at + DESCRIPTOR_ADDR, &first) ||
	    !memory_word(m, at + DESCRIPTOR_SIZE, &bytes))
		return false;
	*ret = (struct jemalloc_extent){
		.descriptor = at,
		.addr = page_down(first), /* a large block begins anywhere in its first page */
		.bytes = page_down(bytes),
		.state = bits >> l->state_shift & l->state_mask,
		.class = bits >> l->class_shift & 0xff,
		.free_cnt = bits >> l->free_shift & 0x3ff,
		.is_slab = bits >> 12 & 1,
	};
	return ret->addr <= addr && ret->addr < MEMORY_END &&
	       ret->bytes <= MEMORY_END - ret->addr && addr < ret->addr + ret->bytes &&
	       (!l->word_has_state || ret->state == (word >> 2 & 7)) &&
	       /* those of a free extent are left from its last use; a last page has none, but in a slab */
	       (ret->state != STATE_ACTIVE ||
		(ret->class < (ret->is_slab ? JEMALLOC_BIN_CNT : CLASS_CNT) &&
		 ret->is_slab == (word & 1) &&
		 (ret->class == word >> 48 || (ret->addr != addr && !ret->is_slab))));
}

/*
 * The same, but either may have changed since the word was read at word_addr: then both are read again. The extent is of
 * 0 bytes if the word is 0 by now.
 */
static bool jemalloc_extent_now(struct memory *m, const struct jemalloc_layout *l,
				uint64_t word_addr, uint64_t word, uint64_t addr,
				struct jemalloc_extent *ret)
{
	for (int i = 0; i < WORD_TRIES; i++) {
		if (jemalloc_extent_of(m, l, word, addr, ret))
			return true;
		memory_forget_page(m, word & l->descriptor_mask);
		if (memory_read(m, word_addr, &word, 8))
			return false;
		if (word & l->descriptor_mask)
			continue;
		*ret = (struct jemalloc_extent){ 0 };
		return true;
	}
	return false;
}

struct search {
	struct memory *memory;
	struct mappings *maps;
	const struct jemalloc_layout *layout;
	uint64_t *root, *words,
		*window; /* buffers: TREE_BYTES of the root, windows of a leaf and of .bss */
	uint64_t left_bytes;
};

/* Of which GiB the leaf of the word is. It is wrong for an extent that begins in the one before; the lowest leaf has none. */
static bool index_of(struct search *s, uint64_t word, uint64_t *ret)
{
	uint64_t descriptor = word & s->layout->descriptor_mask, first;

	if (!mappings_find(s->maps, descriptor) || /* it costs less than to read in vain */
	    !memory_word(s->memory, descriptor + DESCRIPTOR_ADDR, &first) || first >= MEMORY_END)
		return false;
	*ret = first >> LEAF_SPAN_BITS;
	return true;
}

static bool spend(struct search *s, uint64_t bytes)
{
	bool is_enough = bytes <= s->left_bytes;

	s->left_bytes -= is_enough ? bytes : s->left_bytes;
	return is_enough;
}

/* One that was cleared may still have a size class. */
static bool names_one(const struct search *s, uint64_t word)
{
	return word & s->layout->descriptor_mask;
}

/* addr: of the first word, which is for that page. */
static bool check_words(struct search *s, uint64_t addr, const uint64_t *words, size_t cnt,
			uint64_t page, uint32_t *good, uint32_t *bad)
{
	struct jemalloc_extent e;

	for (size_t i = 0; i < cnt && *good + *bad < LEAF_TRIES; i++) {
		if (!names_one(s, words[i]))
			continue;
		if (jemalloc_extent_now(s->memory, s->layout, addr + 8 * i, words[i],
					page + i * MEMORY_PAGE, &e))
			++*good;
		else if (++*bad > LEAF_BAD_CAP)
			return false;
	}
	return true;
}

/*
 * Look at the first words of what may be a leaf that are not 0. *index: of which GiB; TREE_WORDS: it is to be found
 * out. *ret_is_empty: all of it is 0.
 */
static bool is_leaf(struct search *s, uint64_t addr, uint64_t *index, bool *ret_is_empty)
{
	const size_t step = LEAF_WINDOW / 8;
	uint32_t good = 0, bad = 0;

	*ret_is_empty = true;
	if (addr % LEAF_ALIGN || addr >= MEMORY_END - 2 * TREE_BYTES || addr < MEMORY_PAGE)
		return false;
	for (uint64_t at = 0; at < TREE_WORDS && good + bad < LEAF_TRIES; at += step) {
		uint64_t from = page_down(addr + 8 * at), bytes = LEAF_WINDOW + MEMORY_PAGE;
		const uint64_t *words = s->words + (addr + 8 * at - from) / 8;
		size_t first = 0;

		/* a page more: a leaf need not begin with one */
		if (!spend(s, bytes) || memory_window(s->memory, from, s->words, bytes) != bytes)
			return false;
		while (first < step && !names_one(s, words[first]))
			first++;
		if (first == step)
			continue;
		*ret_is_empty = false;
		if (*index == TREE_WORDS && !index_of(s, words[first], index))
			return false;
		if (!check_words(s, addr + 8 * at, words, step,
				 (*index << LEAF_SPAN_BITS) + at * MEMORY_PAGE, &good, &bad))
			return false;
	}
	return good > bad;
}

/* Every word of it is 0 or a leaf of its own GiB, or one without a word yet. */
static bool is_root(struct search *s, uint64_t addr)
{
	uint64_t good = 0, tried = 0;

	if (!spend(s, TREE_BYTES) ||
	    memory_window(s->memory, page_down(addr), s->root, TREE_BYTES + MEMORY_PAGE) !=
		    TREE_BYTES + MEMORY_PAGE)
		return false;
	for (uint64_t i = 0; i < TREE_WORDS; i++) {
		uint64_t leaf = s->root[addr % MEMORY_PAGE / 8 + i], index = i;
		const uint64_t left_bytes = s->left_bytes;
		bool is_empty = false;

		if (!leaf)
			continue;
		if (++tried > LEAVES_CAP || memory_is_late(s->memory))
			return false;
		if (is_leaf(s, leaf, &index, &is_empty)) {
			good++;
			s->left_bytes = left_bytes; /* no search: a large heap has many */
		} else if (!is_empty || leaf % LEAF_ALIGN || !mappings_find(s->maps, leaf)) {
			return false;
		}
	}
	return good > 0;
}

/* One of the first words in the page agrees with a descriptor, or all are 0: cheaper than is_leaf(), and nearly as strict. */
static bool may_be_leaf(struct search *s, uint64_t addr)
{
	uint64_t word, index;
	struct jemalloc_extent e;
	int tries = 0;

	for (uint64_t at = addr; at < page_down(addr) + MEMORY_PAGE; at += 8) {
		if (!memory_word(s->memory, at, &word))
			break;
		if (!names_one(s, word))
			continue;
		if (index_of(s, word, &index) &&
		    jemalloc_extent_of(s->memory, s->layout, word,
				       (index << LEAF_SPAN_BITS) + (at - addr) / 8 * MEMORY_PAGE,
				       &e))
			return true;
		if (++tries == FIRST_TRIES)
			break;
	}
	return !tries;
}

/* The root that the word at addr is in, as the leaf says to which it points; or 0. */
static uint64_t try_word(struct search *s, uint64_t addr, uint64_t word, uint64_t from,
			 uint64_t end)
{
	const struct mapping *map;

	if (word % LEAF_ALIGN || word < MEMORY_PAGE || word >= MEMORY_END)
		return 0;
	map = mappings_find(s->maps, word);
	if (!map || !mapping_is_anonymous(map) || !map->map.is_write)
		return 0;
	for (size_t i = 0; i < sizeof(jemalloc_layouts) / sizeof(*jemalloc_layouts); i++) {
		uint64_t index = TREE_WORDS, root;
		bool is_empty;

		s->layout = &jemalloc_layouts[i];
		if (!may_be_leaf(s, word) || !is_leaf(s, word, &index, &is_empty))
			continue;
		root = addr - 8 * index;
		if (index * 8 <= addr && root >= from && root < end && TREE_BYTES <= end - root &&
		    is_root(s, root))
			return root;
	}
	return 0;
}

/* The root may begin in the last page of .data, in which .bss begins. */
static uint64_t search_bss(struct search *s, uint64_t start, uint64_t from, uint64_t end)
{
	uint64_t root = 0;

	for (uint64_t at = from; !root && at < end; at += WINDOW_BYTES) {
		size_t bytes = end - at < WINDOW_BYTES ? end - at : WINDOW_BYTES;

		bytes = memory_window(s->memory, at, s->window, bytes);
		for (size_t i = 0; i < bytes / 8 && !root && s->left_bytes; i++)
			if (s->window[i])
				root = try_word(s, at + 8 * i, s->window[i], start, end);
	}
	return root;
}

/* Find the next tree in or behind *from, an address, and go on behind it. -ENOENT: there is none. */
static int jemalloc_find(struct memory *m, struct mappings *maps, uint64_t *from,
			 uint64_t *ret_root, const struct jemalloc_layout **ret_layout)
{
	struct search s = { .memory = m, .maps = maps };
	const struct mapping *map, *below = NULL;
	uint64_t root = 0;
	int err = -ENOMEM;

	s.root = malloc(TREE_BYTES + MEMORY_PAGE);
	s.words = malloc(LEAF_WINDOW + MEMORY_PAGE);
	s.window = malloc(WINDOW_BYTES);
	if (!s.root || !s.words || !s.window)
		goto out;
	err = -ENOENT;
	vec_each(&maps->list, map) {
		uint64_t start = map->map.start_addr, end;
		bool is_wanted = is_bss(map, below) && map->map.is_write && map->anon_bytes &&
				 map->map.end_addr - start >= TREE_BYTES - MEMORY_PAGE &&
				 *from < map->map.end_addr;

		below = map;
		if (!is_wanted)
			continue;
		end = bss_end(m, map, maps->list.data);
		if (end > map->map.end_addr || end < start)
			continue;
		s.left_bytes = SEARCH_BYTES_CAP;
		root = search_bss(&s, start - MEMORY_PAGE, *from > start ? *from : start, end);
		if (root)
			break;
	}
	if (root) {
		*from = root + TREE_BYTES;
		*ret_root = root;
		*ret_layout = s.layout;
		err = 0;
	}
out:
	free(s.root);
	free(s.words);
	free(s.window);
	return err;
}

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
