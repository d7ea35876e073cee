/* SPDX-License-Identifier: MIT */
/*
 * explain/jemalloc_find.c - finds the trees of jemalloc: see explain/jemalloc.h.
 *
 * A word in .bss is tried if it points to a leaf: the descriptors that the leaf names say of which GiB it is, and so
 * where the root would begin. Other words point to leaves too, so all 2^18 words of the root are checked.
 */
#include "explain/jemalloc_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "explain/memory.h"

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

const struct jemalloc_layout jemalloc_layouts[JEMALLOC_LAYOUT_CNT] = {
	{ "5.3", 0xffffffffff80, true, 17, 7, 20, 28 },
	{ "5.2", 0xffffffffffc0, false, 16, 3, 18, 26 },
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

bool jemalloc_extent_now(struct memory *m, const struct jemalloc_layout *l, uint64_t word_addr,
			 uint64_t word, uint64_t addr, struct jemalloc_extent *ret)
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
	for (size_t i = 0; i < JEMALLOC_LAYOUT_CNT; i++) {
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

int jemalloc_find(struct memory *m, struct mappings *maps, uint64_t *from, uint64_t *ret_root,
		  const struct jemalloc_layout **ret_layout)
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
