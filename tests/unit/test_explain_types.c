/* SPDX-License-Identifier: MIT */
/* test_explain_types.c - blocks whose first word leads to a vtable, to something like one, or round and round. */
#include "unit.h"

#include "base/clock.h"
#include "explain/explain_priv.h"
#include "explain/types.h"
#include "made_class.h"

#define DATA 0x7f0000000000ULL
#define DATA_PAGES 16
#define DATA_BYTES (DATA_PAGES * MEMORY_PAGE)
#define CODE (DATA + DATA_BYTES)
#define HEAP (CODE + 16 * MEMORY_PAGE) /* between two files */
#define BEHIND (HEAP + 16 * MEMORY_PAGE)
#define VTABLE (DATA + MADE_CLASS_VTABLE)

enum { MAP_DATA, MAP_CODE, MAP_HEAP, MAP_BEHIND, MAP_CNT };

struct made {
	struct memory memory;
	struct mappings maps;
	struct mapping map_list[MAP_CNT];
	uint64_t words[DATA_BYTES / 8];
	uint64_t absent_page; /* its address; 0: none */
	uint64_t read_cnt, file_cnt;
	struct types *types;
};

static int read_data(void *ctx, uint64_t addr, void *buf, size_t bytes)
{
	struct made *h = ctx;

	h->read_cnt++;
	if (addr < DATA || addr + bytes > DATA + DATA_BYTES)
		return -EFAULT;
	memcpy(buf, (char *)h->words + (addr - DATA), bytes);
	return 0;
}

static enum page_state page_of(void *ctx, uint64_t addr)
{
	struct made *h = ctx;

	return addr >= DATA && addr < DATA + DATA_BYTES && page_down(addr) != h->absent_page ?
		       PAGE_RESIDENT :
		       PAGE_ABSENT;
}

static void no_refresh(void *ctx, uint64_t addr, size_t bytes)
{
}

static int read_file(void *ctx, const struct mapping *map, uint64_t addr, void *buf, size_t bytes)
{
	struct made *h = ctx;

	h->file_cnt++;
	return read_data(h, addr, buf, bytes);
}

static const char *find_symbol(void *ctx, const struct mapping *map, uint64_t addr)
{
	return addr == DATA ? "_ZTVN2ns3FooE" : NULL;
}

static struct made *make(bool has_files)
{
	static const struct mapping list[MAP_CNT] = {
		{ .map = { DATA, DATA + DATA_BYTES, .is_read = true, .path = "/bin/a" } },
		{ .map = { CODE, CODE + MEMORY_PAGE, .is_exec = true, .path = "/bin/a" } },
		{ .map = { HEAP, HEAP + MEMORY_PAGE, .is_write = true, .path = "" } },
		{ .map = { BEHIND, BEHIND + MEMORY_PAGE, .is_read = true, .path = "/bin/b" } },
	};
	struct made *h = calloc(1, sizeof(*h));
	struct type_files files = { read_file, find_symbol, h };

	assert_non_null(h);
	h->memory = (struct memory){ .read = read_data,
				     .page = page_of,
				     .refresh = no_refresh,
				     .ctx = h,
				     .deadline_ns = UINT64_MAX };
	assert_int_equal(memory_init(&h->memory), 0);
	memcpy(h->map_list, list, sizeof(list));
	h->maps.list.data = h->map_list;
	h->maps.list.cnt = MAP_CNT;
	made_class(h->words, DATA, CODE + 8);
	assert_int_equal(types_new(&h->memory, &h->maps, has_files ? &files : NULL, &h->types), 0);
	return h;
}

static void drop(struct made *h)
{
	types_free(h->types);
	memory_release(&h->memory);
	free(h);
}

static const struct type *finish(struct made *h, size_t want_cnt)
{
	const struct type *list;
	size_t cnt;

	types_finish(h->types);
	list = types_list(h->types, &cnt);
	assert_int_equal(cnt, want_cnt);
	return list;
}

TEST(test_found)
{
	struct made *h = make(false);
	const struct type *list;
	uint32_t type = types_find(h->types, VTABLE);

	assert_true(type);
	assert_int_equal(types_find(h->types, VTABLE), type);
	/* beside it, in no file, in no mapping, at no word */
	assert_int_equal(types_find(h->types, VTABLE + 8), 0);
	assert_int_equal(types_find(h->types, HEAP + 8), 0);
	assert_int_equal(types_find(h->types, HEAP + 2 * MEMORY_PAGE), 0);
	assert_int_equal(types_find(h->types, VTABLE + 1), 0);
	assert_int_equal(types_find(h->types, 0), 0);
	assert_int_equal(types_find(h->types, ~7ULL), 0);
	assert_int_equal(types_find(NULL, VTABLE), 0);
	types_add(h->types, type, 64);
	types_pin(h->types, type, 100);
	types_settle(h->types, true);
	types_add(h->types, type, 1000); /* of a heap that is not believed */
	types_pin(h->types, type, 1000);
	types_settle(h->types, false);
	types_add(h->types, 0, 1000);
	types_settle(h->types, true);
	list = finish(h, 1);
	assert_string_equal(list->name, "ns::Foo");
	assert_int_equal(list->sum.cnt, 1);
	assert_int_equal(list->sum.bytes, 64);
	assert_true(list->sum.pinned_bytes == 100);
	drop(h);
}

/* Two vtables of one class are one; a class that no block has is none. */
TEST(test_merged)
{
	const uint64_t second = DATA + MEMORY_PAGE, other = DATA + 2 * MEMORY_PAGE;
	struct made *h = make(false);
	const struct type *list;

	made_class(h->words + MEMORY_PAGE / 8, second, CODE);
	made_class(h->words + 2 * MEMORY_PAGE / 8, other, CODE);
	memcpy((char *)h->words + 2 * MEMORY_PAGE + MADE_CLASS_NAME, "*3Bar", 6);
	types_add(h->types, types_find(h->types, VTABLE), 64);
	types_add(h->types, types_find(h->types, second + MADE_CLASS_VTABLE), 64);
	types_settle(h->types, true);
	assert_true(types_find(h->types, other + MADE_CLASS_VTABLE));
	list = finish(h, 1);
	assert_int_equal(list->sum.bytes, 128);
	drop(h);
}

/* What is not present is read from the file, if that is known; and what the program may write is not. */
TEST(test_absent)
{
	struct made *h = make(true);

	h->words[(MADE_CLASS_INFO + 8) / 8] = DATA + MEMORY_PAGE - 4; /* a name on two pages */
	memcpy((char *)h->words + MEMORY_PAGE - 4, "N2ns3BarE", 10);
	h->absent_page = DATA + MEMORY_PAGE;
	types_add(h->types, types_find(h->types, VTABLE), 64);
	types_settle(h->types, true);
	assert_true(h->file_cnt > 0);
	assert_string_equal(finish(h, 1)->name, "ns::Bar");
	drop(h);
	h = make(true);
	h->absent_page = DATA;
	h->map_list[MAP_DATA].map.is_write = true;
	assert_int_equal(types_find(h->types, VTABLE), 0);
	assert_int_equal(h->file_cnt, 0);
	drop(h);
	h = make(false);
	h->absent_page = DATA;
	assert_int_equal(types_find(h->types, VTABLE), 0);
	assert_int_equal(h->read_cnt, 0);
	drop(h);
}

/* Without type_info the symbol of the vtable names the class; another place in the file names none. */
TEST(test_symbol)
{
	struct made *h = make(true);

	h->words[MADE_CLASS_VTABLE / 8 - 1] = 0;
	h->words[MEMORY_PAGE / 8 + 2] = CODE;
	types_add(h->types, types_find(h->types, VTABLE), 64);
	types_add(h->types, types_find(h->types, DATA + MEMORY_PAGE + 16), 64);
	types_settle(h->types, true);
	assert_string_equal(finish(h, 1)->name, "ns::Foo");
	drop(h);
	h = make(false);
	h->words[MADE_CLASS_VTABLE / 8 - 1] = 0;
	assert_int_equal(types_find(h->types, VTABLE), 0);
	drop(h);
}

/* Each of these in a class that is right otherwise. */
TEST(test_lies)
{
	static const struct {
		uint64_t off, value;
	} lies[] = {
		{ 0, 8 }, /* the table of a part of an object */
		{ MADE_CLASS_VTABLE, HEAP }, /* no function */
		{ MADE_CLASS_VTABLE, ~0ULL },
		{ MADE_CLASS_VTABLE - 8,
		  DATA + DATA_BYTES - 8 }, /* a type_info that is not all there */
		{ MADE_CLASS_VTABLE - 8, ~7ULL },
		{ MADE_CLASS_VTABLE - 8, DATA + MADE_CLASS_ROOT_INFO + 1 },
		{ MADE_CLASS_INFO,
		  DATA + MADE_CLASS_VTABLE }, /* of a class that is not the ABI's */
		{ MADE_CLASS_INFO, 0 },
		{ MADE_CLASS_INFO, 8 },
		{ MADE_CLASS_INFO, ~7ULL },
		{ MADE_CLASS_INFO + 8, 0 }, /* no name, one without end, one that is none */
		{ MADE_CLASS_INFO + 8, ~0ULL },
		{ MADE_CLASS_INFO + 8, DATA + DATA_BYTES - 3 },
		{ MADE_CLASS_NAME, 0x65206e6120746f6e },
		{ MADE_CLASS_NAME, 0 },
		{ MADE_CLASS_ROOT_NAME, 0x3432303165646f4e },
	};

	each_case(c, lies) {
		struct made *h = make(true);

		memset((char *)h->words + DATA_BYTES - 8, 'x', 8);
		h->words[c->off / 8] = c->value;
		assert_int_equal(types_find(h->types, VTABLE), 0);
		assert_true(h->read_cnt < 100);
		drop(h);
	}
}

/* However many words and classes there are, what is read and kept has a bound. */
TEST(test_many)
{
	struct made *h = make(false);
	uint64_t start_ns = now_ns();
	uint32_t most = 0;
	size_t cnt;

	/* each word of the file is the table of a class of the same name */
	for (uint64_t at = 256; at + 32 <= DATA_BYTES; at += 24) {
		h->words[at / 8 + 1] = DATA + MADE_CLASS_INFO;
		h->words[at / 8 + 2] = CODE;
	}
	for (int round = 0; round < 200; round++)
		for (uint64_t at = 256; at + 32 <= DATA_BYTES; at += 8) {
			uint32_t type = types_find(h->types, DATA + at);

			most = type > most ? type : most;
			types_add(h->types, type, 1);
		}
	types_settle(h->types, true);
	assert_in_range(most, 1000, TYPE_CNT_CAP);
	types_finish(h->types);
	(void)types_list(h->types, &cnt);
	assert_int_equal(cnt, 1);
	assert_true(now_ns() - start_ns < 20 * NS_PER_S);
	drop(h);
}

/* Any words changed: what is found has a name of letters. */
TEST(test_random)
{
	unsigned int seed = 7;

	for (int round = 0; round < 2000; round++) {
		struct made *h = make(round % 2);
		const struct type *list;
		size_t cnt;

		for (int i = 0; i < 1 + round % 6; i++)
			h->words[(size_t)rand_r(&seed) % (MADE_CLASS_BYTES / 8)] =
				i % 2 ? DATA + (uint64_t)rand_r(&seed) % (2 * MADE_CLASS_BYTES) :
					(uint64_t)rand_r(&seed) << 33 | (uint64_t)rand_r(&seed);
		for (uint64_t at = 0; at < MADE_CLASS_BYTES; at++)
			types_add(h->types, types_find(h->types, DATA + at), 16);
		types_settle(h->types, true);
		types_finish(h->types);
		list = types_list(h->types, &cnt);
		for (size_t i = 0; i < cnt; i++)
			for (const char *c = list[i].name; *c; c++)
				assert_in_range(*c, ' ', '~');
		assert_true(h->read_cnt < 10000);
		drop(h);
	}
}

/* A table in this program's own file, without type_info, that a symbol names. */
extern const uint64_t planted[4] __asm__("_ZTV7Planted");
const uint64_t planted[4] = { 1, 2, 3, 4 };

TEST(test_own_file)
{
	uint64_t addr = (uintptr_t)planted, word = 0;
	struct mappings maps = { 0 };
	struct open_file *open_file = NULL;
	struct type_files files;
	const struct mapping *map;
	const char *name;

	assert_int_equal(target_read_mappings(getpid(), now_ns() + 20 * NS_PER_S, &maps), 0);
	map = mappings_find(&maps, addr);
	assert_non_null(map);
	assert_int_equal(type_files_open(getpid(), &open_file, &files), 0);
	assert_int_equal(files.read(files.ctx, map, addr + 8, &word, sizeof(word)), 0);
	assert_int_equal(word, 2);
	name = files.symbol(files.ctx, map, addr);
	assert_non_null(name);
	assert_string_equal(name, "_ZTV7Planted");
	assert_null(files.symbol(files.ctx, map, addr + 8));
	/* behind the end of the file, and of no file at all */
	assert_int_not_equal(files.read(files.ctx, map, addr + (1ULL << 40), &word, sizeof(word)),
			     0);
	map = mappings_find(&maps, (uintptr_t)&word);
	assert_non_null(map);
	assert_int_not_equal(files.read(files.ctx, map, (uintptr_t)&word, &word, sizeof(word)), 0);
	assert_null(files.symbol(files.ctx, map, (uintptr_t)&word));
	type_files_close(open_file);
	mappings_release(&maps);
}

RUN_TESTS()
