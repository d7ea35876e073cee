/* SPDX-License-Identifier: MIT */
/*
 * test_explain_jemalloc.c - trees of jemalloc that were made for it: what is in them is found, and no tree, however wrong,
 * does harm.
 */
#include "unit.h"

#include "made_jemalloc.h"

#define LIMIT_NS (5 * NS_PER_S) /* of one reading, under sanitizers on a busy machine */

static struct made h;
static struct jemalloc je;
static bool is_made;

static void release_made(void *made)
{
	release(made);
	is_made = false;
}

/* A tree, until the test ends or begins another. */
static void begin(bool is_old)
{
	if (is_made)
		unit_drop(&h);
	make(&h, is_old);
	unit_keep(&h, release_made);
	is_made = true;
}

static void read_tree(void)
{
	uint64_t start_ns = now_ns();

	assert_int_equal(read_made_tree(&h, &je), 0);
	assert_true(now_ns() - start_ns < LIMIT_NS);
	if (!je.tree_cnt || !je.trees[0].is_proved) {
		assert_int_equal(je.sum.live + je.sum.dirty + je.sum.own, 0);
		assert_int_equal(h.map_list[MAP_HEAP].taken_bytes, 0);
	}
}

TEST(test_whole)
{
	const uint64_t slabs = (SMALL_CNT + 3 * WIDE_CNT) * MEMORY_PAGE;

	for (int is_old = 0; is_old < 2; is_old++) {
		const struct jemalloc_sum *s = &je.sum;
		const struct type *list;
		size_t cnt;

		begin(is_old);
		read_tree();
		assert_int_equal(je.tree_cnt, 1);
		assert_string_equal(je.trees[0].why, "");
		assert_true(je.trees[0].is_proved);
		assert_true(je.trees[0].root == ROOT);
		assert_string_equal(je.trees[0].version, is_old ? "5.2" : "5.3");
		assert_int_equal(je.trees[0].bad_cnt + je.trees[0].bad_slab_cnt, 0);
		assert_int_equal(s->live_cnt, LIVE_CNT);
		assert_int_equal(s->live_bytes, slabs / 4 + 16384);
		assert_int_equal(s->active_bytes, slabs + 5 * MEMORY_PAGE);
		assert_int_equal(s->dirty_bytes, 8 * MEMORY_PAGE);
		assert_int_equal(s->muzzy_bytes, 4 * MEMORY_PAGE);
		assert_int_equal(s->retained_bytes, 16 * MEMORY_PAGE);
		assert_int_equal(s->retained, 0);
		assert_int_equal(s->live, slabs / 4 + 5 * MEMORY_PAGE);
		assert_int_equal(s->pinned, slabs - slabs / 4);
		assert_int_equal(s->dirty, 12 * MEMORY_PAGE);
		assert_int_equal(s->own, BASE_BYTES);
		assert_int_equal(s->bins[4].slab_cnt, SMALL_CNT);
		assert_int_equal(s->bins[3].region_cnt, 256 * WIDE_CNT);
		assert_int_equal(s->bins[3].live_cnt, 64 * WIDE_CNT);
		assert_int_equal(s->bins[3].pinned_bytes, WIDE_CNT * 64 * 3 * 48);
		assert_int_equal(h.map_list[MAP_HEAP].taken_bytes, s->live + s->pinned + s->dirty);
		assert_int_equal(h.map_list[MAP_BASE].taken_bytes, BASE_BYTES);
		assert_int_equal(h.map_list[MAP_BSS].taken_bytes, 0);
		list = types_list(h.types, &cnt);
		assert_int_equal(cnt, 1);
		assert_string_equal(list->name, "ns::Foo");
		assert_int_equal(list->sum.cnt, SMALL_CNT + WIDE_CNT);
		assert_int_equal(list->sum.bytes, SMALL_CNT * 64 + WIDE_CNT * 48);
		/* a quarter of each slab is live, and one block of that is an object */
		assert_true(list->sum.pinned_bytes ==
			    SMALL_CNT * 48 * 64 / 16 + WIDE_CNT * 192 * 48 / 64);
	}
}

/* The same of slabs; a block of its own pages pins nothing. */
TEST(test_pins)
{
	struct resident_pins pins = { 0 };
	double sum = 0;
	uint64_t live_cnt = 0;

	begin(false);
	for (uint64_t at = HEAP; at < h.map_list[MAP_HEAP].map.end_addr; at += 16)
		assert_int_equal(vec_push(&pins.list, (struct resident_pin){ at, at, 1 }), 0);
	assert_int_equal(resident_pins_share(&pins), 0);
	h.pins = &pins;
	for (int i = 0; i < 2; i++) /* a second walk does not add to the first */
		read_tree();
	for (uint64_t at = HEAP; at < h.map_list[MAP_HEAP].map.end_addr; at += 16) {
		double bytes = resident_pins_bytes(&pins, at, at);

		live_cnt += !isnan(bytes);
		sum += isnan(bytes) ? 0 : bytes;
	}
	assert_int_equal(live_cnt, LIVE_CNT);
	assert_true(je.sum.pinned && fabs(sum - (double)je.sum.pinned) < 1);
	resident_pins_release(&pins);
}

TEST(test_sizes)
{
	uint64_t from, to, last = 0;

	for (uint32_t i = 0; i < JEMALLOC_BIN_CNT; i++, last = to) {
		jemalloc_bin_range(i, &from, &to);
		assert_int_equal(from, i ? last + 1 : 0);
	}
	assert_int_equal(last, 14336);
}

/* What is not resident is in no row, and in the counts as before. */
TEST(test_absent)
{
	begin(false);
	h.absent_from = HEAP + SMALL_CNT * MEMORY_PAGE;
	read_tree();
	assert_true(je.trees[0].is_proved);
	assert_int_equal(je.sum.live_cnt, LIVE_CNT);
	assert_int_equal(je.sum.live, SMALL_CNT * 16 * 64);
	assert_int_equal(je.sum.dirty, 0);
}

/* Of a tree with more than a few contradictions nothing is believed. */
TEST(test_not_believed)
{
	begin(false);
	for (uint64_t i = 30; i < 40; i++)
		set_word(&h, HEAP + i * MEMORY_PAGE, DESCRIPTORS | 4ULL << 48 | 1);
	read_tree();
	assert_int_equal(je.tree_cnt, 1);
	assert_says(je.trees[0].why, "contradict their descriptor");
	begin(false);
	for (uint64_t i = 30; i < 40; i++)
		*word(&h, DESCRIPTORS + 128 * i + 64) = 0xfeeeeeeeeeeeeeee;
	read_tree();
	assert_says(je.trees[0].why, "contradict their bitmap");
}

/* Another version of the descriptors, and words in the root that lead elsewhere: no tree. */
TEST(test_none)
{
	begin(false);
	for (uint64_t d = DESCRIPTORS; d < h.descriptor; d += 128)
		*word(&h, d) <<= 3;
	read_tree();
	assert_int_equal(je.tree_cnt, 0);
	begin(false);
	*word(&h, ROOT + 8 * 77) = HEAP;
	*word(&h, HEAP) = 1;
	*word(&h, HEAP + 8) = DESCRIPTORS;
	read_tree();
	assert_int_equal(je.tree_cnt, 0);
	/* all words of the root lead to one leaf, or all of .bss to the heap */
	for (uint64_t i = 0; i < 1 << 18; i++)
		*word(&h, ROOT + 8 * i) = LEAF;
	read_tree();
	assert_int_equal(je.tree_cnt, 0);
	for (uint64_t i = 0; i < BSS_BYTES; i += 8)
		*word(&h, BSS + i) = HEAP + i * 64 % HEAP_BYTES;
	read_tree();
	assert_int_equal(je.tree_cnt, 0);
}

/* Built for addresses of 57 bits it has three levels of 2^15 words, and two words for a page. It is not read. */
TEST(test_wide_addresses)
{
	const uint64_t inner = LEAF + 0x100000, pages = HEAP_BYTES / MEMORY_PAGE;
	uint64_t words[HEAP_BYTES / MEMORY_PAGE];

	begin(false);
	memcpy(words, word(&h, LEAF), sizeof(words));
	memset(word(&h, LEAF), 0, sizeof(words));
	memset(word(&h, BSS), 0, BSS_BYTES);
	for (uint64_t i = 0; i < pages; i++) {
		uint64_t at = LEAF + 16 * ((HEAP / MEMORY_PAGE + i) % (1 << 15));

		*word(&h, at) = words[i] & ((1ULL << 48) - 1) & ~127ULL; /* the descriptor alone */
		*word(&h, at + 8) = words[i] >> 48 << 5 | (words[i] & 127);
	}
	*word(&h, ROOT + 8 * (HEAP >> 42)) = inner;
	*word(&h, inner + 8 * ((HEAP >> 27) % (1 << 15))) = LEAF;
	read_tree();
	assert_int_equal(je.tree_cnt, 0);
	for (size_t i = 0; i < MAP_CNT; i++)
		assert_int_equal(h.map_list[i].taken_bytes, 0);
}

/* Each of these in a tree that is right otherwise. */
TEST(test_lies)
{
	static const struct {
		uint64_t addr, value;
	} lies[] = {
		{ DESCRIPTORS + 16, ~0ULL }, /* sizes that wrap, in slabs and large extents */
		{ DESCRIPTORS + 16, 1ULL << 46 },
		{ DESCRIPTORS + 128 * 220 + 16, ~0ULL - HEAP },
		{ DESCRIPTORS + 128 * 221 + 16,
		  (1ULL << 47) - HEAP }, /* dirty to the end of memory */
		{ DESCRIPTORS + 128 * 222 + 16, 0 },
		{ DESCRIPTORS + 8, ~0ULL },
		{ DESCRIPTORS + 8, 0 },
		{ DESCRIPTORS, ~0ULL }, /* a class and a number of free regions that cannot be */
		{ DESCRIPTORS + 128 * 220, 0xffULL << 20 },
		{ LEAF, ~0ULL },
		{ LEAF, LEAF },
		{ BASE,
		  ~0ULL }, /* metadata without end, and a list of blocks that bites its tail */
		{ BASE, 0 },
		{ BASE + 8, BASE },
		{ BASE + 8, HEAP },
		{ BASE + 24, ~0ULL },
		{ ROOT + 8 * INDEX + 8, LEAF },
		{ ROOT + 8 * INDEX + 8, ~0ULL },
		{ ROOT + 8 * INDEX + 8, HEAP + HEAP_BYTES - 64 }, /* a leaf that is not all there */
	};

	each_case(c, lies) {
		begin(false);
		*word(&h, c->addr) = c->value;
		h.memory.deadline_ns = now_ns() + 2 * NS_PER_S;
		read_tree();
		if (je.sum.live_cnt)
			assert_in_range(je.sum.live_cnt, LIVE_CNT - 64, LIVE_CNT + 1);
	}
}

/* A word, and then a descriptor, that another thread changes all the time: one slab of 220 is in doubt. */
TEST(test_torn)
{
	for (int i = 0; i < 2; i++) {
		begin(false);
		h.torn = word(&h, i ? LEAF + 8 * 60 : DESCRIPTORS + 128 * 60 + 64);
		read_tree();
		assert_true(je.tree_cnt && je.trees[0].is_proved);
		assert_in_range(je.sum.live_cnt, LIVE_CNT - 16, LIVE_CNT);
	}
}

/* Any bytes changed: a reading ends, and says of no page more than is there. */
TEST(test_random)
{
	unsigned int seed = 7;

	for (int round = 0; round < 60; round++) {
		begin(round % 2);
		for (int i = 0; i < 1 + round % 20; i++) {
			uint64_t off = (uint64_t)rand_r(&seed) & ~7ULL;
			uint64_t *w = i % 3 == 0 ? word(&h, LEAF + off % 0x1000) :
				      i % 3 == 1 ? word(&h, DESCRIPTORS + off % (230 * 128)) :
						   word(&h, round % 5 ? BASE + off % 64 :
									ROOT + off % (1 << 21));

			*w = i % 2 ? *w ^ 1ULL << rand_r(&seed) % 64 :
				     DESCRIPTORS + (uint64_t)rand_r(&seed) % 0x8000;
		}
		h.memory.deadline_ns = now_ns() + 2 * NS_PER_S;
		read_tree();
		assert_true(h.map_list[MAP_HEAP].taken_bytes <= HEAP_BYTES);
	}
}

/* After the deadline nothing is read, and so nothing is believed. */
TEST(test_late)
{
	begin(false);
	h.memory.deadline_ns = 0;
	read_tree();
	assert_int_equal(h.read_cnt, 0);
	assert_int_equal(je.tree_cnt, 0);
}

RUN_TESTS()
