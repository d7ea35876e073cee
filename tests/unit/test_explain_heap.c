/* SPDX-License-Identifier: MIT */
/* test_explain_heap.c - heaps of glibc that were made for it: what is in them is found, and no heap, however wrong, does harm. */
#include "unit.h"

#include "made_heap.h"

#define READ_CAP 100000 /* calls, for 256 pages */
#define LIMIT_NS (2 * NS_PER_S) /* of one walk of 1 MiB, under sanitizers on a busy machine */

static uint64_t sum_of_uses(const struct heap_sum *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < HEAP_USE_CNT; i++)
		sum += s->bytes[i];
	return sum;
}

/* The heap of a test that walks one. */
static struct made_heap h;
static struct glibc g;

static int release_heap(void **state)
{
	glibc_release(&g);
	made_release(&h);
	return 0;
}

TEST_WITH(test_whole, NULL, release_heap)
{
	const struct glibc_arena *a;
	const struct type *list;
	size_t cnt;

	made_heap_whole(&h);
	assert_int_equal(made_walk(&h, &g), 0);
	assert_true(g.main_arena == MADE_ARENA);
	assert_true(g.parameters.addr == MADE_PARAMETERS);
	assert_true(g.cache_key == MADE_KEY);
	assert_int_equal(g.arenas.cnt, 1);
	a = g.arenas.data;
	assert_string_equal(a->why, "");
	assert_true(a->is_proved);
	assert_int_equal(a->sum.cnt[HEAP_LIVE], 201);
	assert_int_equal(a->sum.cnt[HEAP_CACHED], 5);
	assert_int_equal(a->cached_cnt, 5);
	assert_int_equal(a->fast_cnt, 50);
	assert_int_equal(a->walked_fast_cnt, 50);
	assert_true(a->bins_are_read);
	assert_int_equal(a->bin_cnt, 101);
	assert_int_equal(a->sum.cnt[HEAP_FREE], 151);
	assert_int_equal(a->sum.bytes[HEAP_UNKNOWN], 0);
	assert_int_equal(sum_of_uses(&a->sum), MADE_HEAP_BYTES);
	/* the free run gives its whole pages, and the top its own but the first */
	assert_int_equal(heap_sum_resident(&a->sum), MADE_HEAP_BYTES);
	assert_int_equal(h.map_list[0].taken_bytes, MADE_HEAP_BYTES);
	assert_int_equal(a->sum.trim,
			 2 * MEMORY_PAGE + MADE_HEAP + MADE_HEAP_BYTES - page_up(a->top + 48));
	assert_true(g.classes[heap_class_of(208)].live_cnt == 100);
	list = types_list(h.types, &cnt);
	assert_int_equal(cnt, 1);
	assert_string_equal(list->name, "ns::Foo");
	assert_int_equal(list->sum.cnt, 100);
	assert_int_equal(list->sum.bytes, 100 * 208);
	assert_true(list->sum.pinned_bytes > 0 && list->sum.pinned_bytes < g.sum.pinned);
}

/* What all live blocks pin together is what is pinned, each block pins part of one page or two, and nobody else pins. */
TEST_WITH(test_pins, NULL, release_heap)
{
	struct resident_pins pins = { 0 };
	double sum = 0;
	uint64_t live_cnt = 0;

	made_heap_whole(&h);
	for (uint64_t at = MADE_HEAP + MADE_HEAP_BYTES; at > MADE_HEAP; at -= 16)
		assert_int_equal(vec_push(&pins.list, (struct resident_pin){ at - 16, at, 1 }), 0);
	assert_int_equal(resident_pins_share(&pins), 0);
	h.pins = &pins;
	assert_int_equal(made_walk(&h, &g), 0);
	for (uint64_t at = MADE_HEAP; at < MADE_HEAP + MADE_HEAP_BYTES; at += 16) {
		double bytes = resident_pins_bytes(&pins, at, at + 16);

		if (isnan(bytes))
			continue;
		assert_true(bytes >= 0 && bytes < 2 * MEMORY_PAGE);
		live_cnt++;
		sum += bytes;
	}
	assert_true(g.sum.pinned > 5 * MEMORY_PAGE);
	assert_int_equal(live_cnt, g.sum.cnt[HEAP_LIVE]);
	assert_true(fabs(sum - (double)g.sum.pinned) < 1);
	resident_pins_release(&pins);
}

#define MMAPPED_PAGES 64
#define MMAPPED (MADE_HEAP + MADE_HEAP_BYTES - MMAPPED_PAGES * MEMORY_PAGE)

/* The header of a block with pages of its own, `off` bytes behind their begin. Return the program's address. */
static uint64_t mmapped(struct made_heap *heap, uint64_t addr, uint64_t off, uint64_t pages)
{
	uint64_t bytes = pages * MEMORY_PAGE - off - (heap->version == &made_2_43 ? 16 : 0);

	*made_word(heap, addr + off) = off;
	*made_word(heap, addr + off + 8) = bytes | 2;
	return addr + off + 16;
}

/* memalign() leaves a header in front of the block's own, and realloc() changes only the latter. */
static void check_memalign(const struct made_version *version)
{
	static const struct {
		uint64_t off, first_pages, pages; /* by the first header, and by the block's own */
	} blocks[] = { { 0, 4, 4 },	      { 48, 4, 4 },   { 4080, 4, 4 },
		       { 0x4000 - 16, 8, 8 }, { 1008, 4, 6 }, { 112, 6, 3 } };
	const size_t cnt = sizeof(blocks) / sizeof(*blocks);
	struct resident_pins pins = { 0 };
	struct mapping maps[4];
	uint64_t at = MMAPPED, top;
	uint32_t *counts;
	struct made_heap own;
	struct glibc walked;

	made_heap_whole_as(&own, version);
	for (size_t i = 0; i < cnt; i++) {
		uint64_t addr = mmapped(&own, at, 0, blocks[i].first_pages);

		if (blocks[i].off)
			addr = mmapped(&own, at, blocks[i].off, blocks[i].pages);
		assert_int_equal(vec_push(&pins.list, (struct resident_pin){ addr, addr, 1 }), 0);
		at += blocks[i].pages * MEMORY_PAGE;
	}
	counts = (uint32_t *)((char *)made_word(&own, MADE_PARAMETERS) + version->n_mmaps_max_off);
	counts[-1] = counts[1] = cnt; /* now, and at most */
	*made_word(&own, MADE_PARAMETERS + version->n_mmaps_max_off + 16) = at - MMAPPED;
	*made_word(&own, MADE_PARAMETERS + version->n_mmaps_max_off + 24) = at - MMAPPED;
	/* they lie behind the heap, which is so much smaller */
	top = *made_word(&own, own.at + 8);
	*made_word(&own, own.at + 8) = top - MMAPPED_PAGES * MEMORY_PAGE;
	*made_word(&own, MADE_ARENA + 2184) = *made_word(&own, MADE_ARENA + 2192) =
		MMAPPED - MADE_HEAP;
	memcpy(maps, own.map_list, sizeof(*maps));
	memcpy(maps + 1, own.map_list, sizeof(own.map_list));
	maps[0].map.end_addr = maps[1].map.start_addr = MMAPPED;
	maps[0].rss_bytes -= MMAPPED_PAGES * MEMORY_PAGE;
	maps[1].rss_bytes = MMAPPED_PAGES * MEMORY_PAGE;
	maps[1].map.path = "";
	own.maps.list.data = maps;
	own.maps.list.cnt = 4;
	assert_int_equal(resident_pins_share(&pins), 0);
	own.pins = &pins;
	assert_int_equal(made_walk(&own, &walked), 0);
	assert_true(walked.arenas.data[0].is_proved);
	assert_int_equal(walked.mmapped.cnt[HEAP_LIVE], cnt);
	assert_int_equal(walked.mmapped.live, at - MMAPPED);
	assert_int_equal(maps[1].taken_bytes, at - MMAPPED);
	for (size_t i = 0; i < cnt; i++)
		assert_true(resident_pins_bytes(&pins, pins.list.data[i].addr,
						pins.list.data[i].addr) == 0);
	resident_pins_release(&pins);
	glibc_release(&walked);
	made_release(&own);
}

TEST(test_memalign)
{
	check_memalign(&made_2_36);
	check_memalign(&made_2_43);
}

/* A page that is swapped out is not read; the rest is found again behind it. */
TEST_WITH(test_absent_page, NULL, release_heap)
{
	made_heap_whole(&h);
	h.absent_addr = MADE_HEAP + 4 * MEMORY_PAGE;
	assert_int_equal(made_walk(&h, &g), 0);
	assert_true(g.arenas.data->is_proved);
	assert_in_range(g.arenas.data->sum.bytes[HEAP_UNKNOWN], MEMORY_PAGE - 608,
			MEMORY_PAGE + 608);
	assert_true(heap_sum_resident(&g.arenas.data->sum) == MADE_HEAP_BYTES - MEMORY_PAGE);
}

/* Half of the heap overwritten: nothing of it is believed, and the bytes are where they were. */
TEST_WITH(test_not_believed, NULL, release_heap)
{
	size_t cnt;

	made_heap_whole(&h);
	memset(made_word(&h, MADE_HEAP + 5 * MEMORY_PAGE), 0x41, 8 * MEMORY_PAGE);
	assert_int_equal(made_walk(&h, &g), 0);
	assert_false(g.arenas.data->is_proved);
	assert_says(g.arenas.data->why, "are not valid chunks");
	assert_int_equal(g.sum.live, 0);
	assert_int_equal(g.arenas.data->sum.unknown, MADE_HEAP_BYTES);
	(void)types_list(h.types, &cnt);
	assert_int_equal(cnt, 0);
}

/* Each of these in an arena that is right otherwise. */
TEST(test_lies)
{
	static const struct {
		uint64_t addr, value;
	} lies[] = {
		{ MADE_HEAP + 0x290 + 8, ~0ULL }, /* sizes that wrap */
		{ MADE_HEAP + 0x290 + 8, 0x7ffffffffffffff1 },
		{ MADE_HEAP + 0x290 + 8, 1 },
		{ MADE_HEAP + 0x290 + 0xd0 + 16,
		  MADE_HEAP + 0x290 + 0xd0 }, /* a bin that bites its tail */
		{ MADE_ARENA + 16, MADE_HEAP + 0x290 + 8 }, /* a fastbin in the middle of a chunk */
		{ MADE_ARENA + 96, ~0xfULL }, /* a top beyond all memory */
		{ MADE_ARENA + 96, MADE_HEAP + 16 },
		{ MADE_ARENA + 2160, MADE_HEAP }, /* a ring of arenas that leads into the heap */
		{ MADE_ARENA + 2184, 1 }, /* another size than there is */
		{ MADE_PARAMETERS + 96, MADE_HEAP + 0x800 }, /* another start of the break */
	};

	each_case(c, lies) {
		uint64_t start_ns = now_ns();
		struct made_heap own;
		struct glibc walked;

		made_heap_whole(&own);
		*made_word(&own, c->addr) = c->value;
		assert_int_equal(made_walk(&own, &walked), 0);
		assert_true(now_ns() - start_ns < LIMIT_NS);
		if (walked.arenas.cnt && walked.arenas.data->is_proved)
			assert_in_range(walked.sum.cnt[HEAP_LIVE], 198, 210);
		glibc_release(&walked);
		made_release(&own);
	}
}

/* Two chunks in a fastbin that lead to each other. */
TEST_WITH(test_fast_loop, NULL, release_heap)
{
	uint64_t a, b;

	made_init(&h);
	a = made_fast(&h, 32);
	b = made_fast(&h, 32);
	made_chunk(&h, 64);
	made_end(&h);
	*made_word(&h, a + 16) = (a + 16) >> 12 ^ b;
	assert_int_equal(made_walk(&h, &g), 0);
	assert_int_equal(g.arenas.data->fast_cnt, 2);
	assert_true(g.arenas.data->is_proved);
}

/* Another thread merges and splits the same free chunk all the time. */
static void toggle(struct made_heap *heap)
{
	uint64_t at = MADE_HEAP + 0x290 + 208;

	if (heap->read_cnt % 3)
		return;
	*made_word(heap, at + 8) = *made_word(heap, at + 8) == 0x131 ? 0x161 : 0x131;
	*made_word(heap, at + 304) = 304;
	*made_word(heap, at + 352) = 352;
}

TEST_WITH(test_torn, NULL, release_heap)
{
	made_heap_whole(&h);
	h.on_read = toggle;
	assert_int_equal(made_walk(&h, &g), 0);
	assert_true(g.arenas.data->is_proved);
	assert_in_range(g.sum.cnt[HEAP_LIVE], 195, 201);
	assert_true(sum_of_uses(&g.arenas.data->sum) == MADE_HEAP_BYTES);
}

/* Any bytes changed: a walk ends, and says of no page more than is there. */
TEST(test_random)
{
	unsigned int seed = 7;

	for (int round = 0; round < 150; round++) {
		uint64_t start_ns = now_ns();
		struct made_heap own;
		struct glibc walked;

		made_heap_whole(&own);
		for (int i = 0; i < 1 + round % 40; i++) {
			uint64_t at = (uint64_t)rand_r(&seed) % 0x10000 & ~7ULL;
			uint64_t *word = made_word(&own, i % 4 ? MADE_HEAP + at :
								 MADE_DATA + at % MADE_DATA_BYTES);

			*word = i % 3 ? *word ^ 1ULL << rand_r(&seed) % 48 :
					MADE_HEAP + (uint64_t)rand_r(&seed) % MADE_HEAP_BYTES;
		}
		assert_int_equal(made_walk(&own, &walked), 0);
		assert_true(heap_sum_resident(&walked.sum) <= MADE_HEAP_BYTES);
		assert_true(own.map_list[0].taken_bytes <= MADE_HEAP_BYTES);
		assert_true(now_ns() - start_ns < LIMIT_NS);
		assert_true(own.read_cnt < READ_CAP);
		glibc_release(&walked);
		made_release(&own);
	}
}

/* After the deadline nothing is read, and so nothing is believed. */
TEST_WITH(test_late, NULL, release_heap)
{
	made_heap_whole(&h);
	h.memory.deadline_ns = 0;
	assert_int_equal(made_walk(&h, &g), 0);
	assert_int_equal(h.read_cnt, 0);
	assert_int_equal(g.sum.live, 0);
}

/* .data full of what an empty bin looks like, and nothing else of an arena. */
TEST_WITH(test_no_arena, NULL, release_heap)
{
	made_init(&h);
	for (uint64_t at = 16; at + 8 < MADE_DATA_BYTES; at += 16)
		*made_word(&h, MADE_DATA + at) = *made_word(&h, MADE_DATA + at + 8) =
			MADE_DATA + at - 16;
	/* all bins are empty by chance; the sizes are what tells */
	assert_int_equal(made_walk(&h, &g), 0);
	assert_true(!g.main_arena || !g.arenas.data->is_proved);
	assert_int_equal(g.sum.live, 0);
}

/* For each of three versions one for each of its bins that could be the last of another arena, which is not there. */
#define FALSE_LOOKS (3 * 126 + 8)

/* What looks like an arena and leads to none costs a look or two, not tries. It lies before the true one. */
TEST(test_false_arena)
{
	static const uint64_t nexts[] = {
		0, ~7ULL, MADE_HEAP - 8, MADE_DATA + 64, MADE_DATA - 64, 1ULL << 40
	};
	struct made_heap own;
	struct glibc walked;
	uint64_t before;

	made_heap_whole(&own);
	assert_int_equal(made_walk(&own, &walked), 0);
	before = own.look_cnt;
	glibc_release(&walked);
	each_case(c, nexts) {
		for (uint64_t at = MADE_DATA + 112; at < MADE_DATA + 112 + 127 * 16; at += 16)
			*made_word(&own, at) = *made_word(&own, at + 8) = at - 16;
		*made_word(&own, MADE_DATA + 2160) = *c;
		own.look_cnt = 0;
		assert_int_equal(made_walk(&own, &walked), 0);
		assert_true(walked.main_arena == MADE_ARENA);
		assert_true(walked.arenas.data->is_proved);
		assert_true(own.look_cnt <= before + FALSE_LOOKS);
		glibc_release(&walked);
	}
	made_release(&own);
}

/* Threads change many bins of the main arena while it is looked for, then fewer. */
static void keep_busy(struct made_heap *heap)
{
	for (uint32_t i = 60; i < 80; i++)
		*made_word(heap, made_bin(i) + 16) = heap->read_cnt < 300 ? MADE_HEAP : made_bin(i);
}

TEST_WITH(test_busy_main, NULL, release_heap)
{
	made_heap_whole(&h);
	h.on_read = keep_busy;
	assert_int_equal(made_walk(&h, &g), 0);
	assert_true(h.read_cnt > 300);
	assert_true(g.main_arena == MADE_ARENA);
	assert_true(g.arenas.data->is_proved);
	assert_string_equal(g.why, "");
}

TEST(test_versions)
{
	static const struct made_version *const versions[] = { &made_2_31, &made_2_36, &made_2_43 };

	each_case(c, versions) {
		uint64_t fast_cnt = (*c)->has_fast ? 50 : 0;
		const struct glibc_arena *a;
		struct made_heap own;
		struct glibc walked;

		made_heap_whole_as(&own, *c);
		assert_int_equal(made_walk(&own, &walked), 0);
		if (walked.main_arena != made_arena(&own) ||
		    walked.parameters.addr != MADE_PARAMETERS)
			fail_msg("%s: %s", (*c)->name, walked.why);
		a = walked.arenas.data;
		if (!a->is_proved || a->sum.cnt[HEAP_LIVE] != 201 || a->sum.cnt[HEAP_CACHED] != 5 ||
		    a->cached_cnt != 5 || a->walked_fast_cnt != fast_cnt || a->bin_cnt != 101 ||
		    a->sum.cnt[HEAP_FREE] != 101 + fast_cnt || a->sum.bytes[HEAP_UNKNOWN])
			fail_msg("%s: %s, %llu live, %llu cached", (*c)->name, a->why,
				 (unsigned long long)a->sum.cnt[HEAP_LIVE],
				 (unsigned long long)a->sum.cnt[HEAP_CACHED]);
		glibc_release(&walked);
		made_release(&own);
	}
}

/* A block of zeroes that is as large as a thread's cache is one of the program's. */
TEST_WITH(test_no_cache, NULL, release_heap)
{
	made_init(&h);
	made_cache(&h);
	made_cached(&h, 64);
	for (int i = 0; i < 50; i++)
		memset(made_word(&h, made_chunk(&h, 0x290) + 16), 0, 0x280);
	made_end(&h);
	assert_int_equal(made_walk(&h, &g), 0);
	assert_int_equal(g.arenas.data->sum.cnt[HEAP_LIVE], 50);
	assert_int_equal(g.arenas.data->sum.cnt[HEAP_OWN], 1);
}

/* Of a C library that is there, it is said why its heap was not walked. */
TEST(test_unread)
{
	static const struct {
		uint64_t addr, value;
		const char *why;
	} cases[] = {
		{ MADE_ARENA + 112 + 16 * 126, 0, "of an unknown version" }, /* the last bin */
		{ MADE_ARENA + 2160, 0, "of an unknown version" },
		{ MADE_ARENA + 2160, MADE_HEAP, "the list of arenas leads to 0x555500000000" },
		{ MADE_ARENA + 2184, 1ULL << 60, "its main arena at 0x7f0000000c60" },
	};

	each_case(c, cases) {
		struct made_heap own;
		struct glibc walked;

		made_heap_whole(&own);
		*made_word(&own, c->addr) = c->value;
		assert_int_equal(made_walk(&own, &walked), 0);
		assert_true(!walked.main_arena && walked.is_unread);
		assert_says(walked.why, c->why);
		glibc_release(&walked);
		/* before the first call of malloc there is none */
		own.map_list[0].rss_bytes = 0;
		assert_int_equal(made_walk(&own, &walked), 0);
		assert_true(!walked.main_arena && !walked.is_unread);
		glibc_release(&walked);
		own.map_list[0].rss_bytes = MADE_HEAP_BYTES;
		/* a library of this name is no glibc */
		own.map_list[1].map.path = own.map_list[2].map.path = "/usr/lib/libcrypto.so.3";
		assert_int_equal(made_walk(&own, &walked), 0);
		assert_true(!walked.main_arena && !walked.is_unread);
		glibc_release(&walked);
		made_release(&own);
	}
}

RUN_TESTS()
