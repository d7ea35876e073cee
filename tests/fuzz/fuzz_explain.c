/* SPDX-License-Identifier: MIT */
/*
 * fuzz_explain.c - heaps of glibc's malloc and of jemalloc with words that a process has changed, and texts of smaps of
 * any content.
 *
 * The first byte chooses: 0: the rest is a text of smaps, in pieces. Otherwise the rest is changes, of 12 bytes each: which
 * word of a heap that was right, and its value; with 255 and 254 the heap is jemalloc's, with descriptors of 5.3 and 5.2, with
 * 253 it is a pool of CPython. The tables of a C++ class are among what may be changed. What is found of a heap is never more than the heap.
 */
#include "fuzz.h"

#include "../unit/made_heap.h"
#include "../unit/made_jemalloc.h"
#include "../unit/made_pool.h"

#define READ_CAP 1000000 /* calls, for 260 pages */
#define JEMALLOC 254 /* and more */
#define PYTHON 253

static void read_smaps(const uint8_t *data, size_t bytes)
{
	struct mappings_reader reader = { 0 };
	struct mappings maps = { 0 };
	int err = 0;

	for (size_t at = 0; at < bytes && !err; at += 61)
		err = mappings_feed(&reader, (const char *)data + at,
				    bytes - at < 61 ? bytes - at : 61);
	if (mappings_finish(&reader, err ? NULL : &maps) || err)
		return;
	for (size_t i = 1; i < maps.list.cnt; i++)
		if (maps.list.data[i].map.start_addr < maps.list.data[i - 1].map.end_addr)
			abort();
	mappings_release(&maps);
}

/* Of all classes together there are no more blocks than of the heap. */
static void check_types(const struct types *types, uint64_t live_cnt, uint64_t live_bytes)
{
	uint64_t blocks = 0, sum = 0;
	size_t cnt;
	const struct type *list = types_list(types, &cnt);

	for (size_t i = 0; i < cnt; i++) {
		blocks += list[i].sum.cnt;
		sum += list[i].sum.bytes;
	}
	if (blocks > live_cnt || sum > live_bytes)
		abort();
}

static uint64_t word_addr(uint32_t word)
{
	const uint32_t data_words = MADE_DATA_BYTES / 8, heap_words = MADE_HEAP_BYTES / 8;

	/* every other change is in the arena, and of the heap the part that has chunks is most likely */
	if (word & 1)
		return MADE_DATA + (word >> 1) % data_words * 8ULL;
	return MADE_HEAP + (word >> 1) % (word & 2 ? heap_words : 12000) * 8ULL;
}

static void walk(const uint8_t *data, size_t bytes)
{
	struct made_heap h;
	struct glibc g;
	uint64_t sum = 0;

	made_heap_whole(&h);
	h.absent_addr = data[0] & 2 ? MADE_HEAP + (data[0] >> 2) * MEMORY_PAGE : 0;
	for (data++, bytes--; bytes >= 12; data += 12, bytes -= 12) {
		uint32_t word;

		memcpy(&word, data, sizeof(word));
		memcpy(made_word(&h, word_addr(word)), data + 4, 8);
	}
	if (made_walk(&h, &g) || h.read_cnt > READ_CAP)
		abort();
	for (size_t i = 0; i < g.arenas.cnt; i++)
		for (size_t use = 0; use < HEAP_USE_CNT; use++)
			sum += g.arenas.data[i].sum.bytes[use];
	if (h.map_list[0].taken_bytes > MADE_HEAP_BYTES ||
	    h.map_list[1].taken_bytes > MADE_DATA_BYTES ||
	    (g.arenas.cnt && g.arenas.data[0].is_proved && sum < MADE_HEAP_BYTES / 2))
		abort();
	check_types(h.types, g.sum.cnt[HEAP_LIVE], g.sum.bytes[HEAP_LIVE]);
	glibc_release(&g);
	made_release(&h);
}

/* In turn: a descriptor, a word of the leaf, the root, the metadata's header, the class, the program's headers. */
static uint64_t *tree_word(struct made *h, uint32_t change)
{
	static const struct {
		uint64_t addr;
		uint32_t words;
	} parts[] = { { DESCRIPTORS, 230 * 16 },
		      { LEAF, 512 },
		      { ROOT, 1 << 18 },
		      { BASE, 8 },
		      { CLASS, 24 },
		      { PROGRAM, 32 } };
	const size_t part = change % (sizeof(parts) / sizeof(*parts));

	return word(h, parts[part].addr + (change >> 3) % parts[part].words * 8ULL);
}

static void walk_tree(const uint8_t *data, size_t bytes)
{
	struct made h;
	struct jemalloc je;

	make(&h, data[0] == JEMALLOC);
	for (data++, bytes--; bytes >= 12; data += 12, bytes -= 12) {
		uint32_t change;

		memcpy(&change, data, sizeof(change));
		memcpy(tree_word(&h, change), data + 4, 8);
	}
	h.memory.deadline_ns = now_ns() + 2 * NS_PER_S;
	if (read_made_tree(&h, &je) || h.map_list[MAP_HEAP].taken_bytes > HEAP_BYTES ||
	    h.map_list[MAP_BASE].taken_bytes > BASE_BYTES)
		abort();
	check_types(h.types, je.sum.live_cnt, je.sum.live_bytes);
	release(&h);
}

static void walk_pools(const uint8_t *data, size_t bytes)
{
	static uint64_t words[POOLS_BYTES / 8];
	struct memory m = pool_memory(words);
	struct mapping list[] = { { .map = { .path = "/python" } },
				  { .map = { .start_addr = POOLS_ADDR,
					     .end_addr = POOLS_ADDR + POOLS_BYTES,
					     .path = "",
					     .is_read = true,
					     .is_write = true },
				    .rss_bytes = POOLS_BYTES } };
	struct mappings maps = { .list = { list, 2, 2 } };
	struct python_pools found;

	make_pool(words, POOLS_ADDR);
	make_pool(words + POOL_WORDS, POOLS_ADDR + POOL_WORDS * 8);
	for (data++, bytes--; bytes >= 12; data += 12, bytes -= 12) {
		uint32_t word;

		memcpy(&word, data, sizeof(word));
		/* most likely in the header */
		memcpy(&words[word & 1 ? (word >> 1) % 6 : (word >> 1) % (POOLS_BYTES / 8)],
		       data + 4, 8);
	}
	python_pools_read(&m, &maps, &found);
	if (list[1].taken_bytes > POOLS_BYTES || found.live + found.free != list[1].taken_bytes ||
	    found.live_cnt * 16 > found.live)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (bytes && data[0] == PYTHON) {
		walk_pools(data, bytes);
		return 0;
	}
	if (bytes && data[0] >= JEMALLOC)
		walk_tree(data, bytes);
	else if (bytes && data[0])
		walk(data, bytes);
	else if (bytes)
		read_smaps(data + 1, bytes - 1);
	return 0;
}
