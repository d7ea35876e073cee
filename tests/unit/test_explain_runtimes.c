/* SPDX-License-Identifier: MIT */
/* test_explain_runtimes.c - heaps of the JVM, Go and V8, made word by word: found if all agrees, and left to their mappings if not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "explain/rows.h"

#define PART_BYTES (1u << 20)
#define PARTS 3
#define MIB (1ULL << 20)

/* Three parts of memory have content; the rest of all mappings is zeros. All is resident. */
struct made {
	struct memory m;
	struct mapping list[8];
	struct mappings maps;
	uint64_t parts[PARTS]; /* addresses */
	char *content[PARTS];
	uint64_t read_cnt;
};

static char *at(struct made *h, uint64_t addr)
{
	for (int i = 0; i < PARTS; i++)
		if (addr >= h->parts[i] && addr < h->parts[i] + PART_BYTES)
			return h->content[i] + (addr - h->parts[i]);
	return NULL;
}

static void set(struct made *h, uint64_t addr, uint64_t value)
{
	memcpy(at(h, addr), &value, sizeof(value));
}

static int read_made(void *ctx, uint64_t addr, void *buf, size_t bytes)
{
	struct made *h = ctx;
	char *to = buf;

	h->read_cnt++;
	for (size_t done = 0; done < bytes; done += 8) {
		const char *from = at(h, (addr + done) & ~7ULL);

		memset(to + done, 0, bytes - done < 8 ? bytes - done : 8);
		if (from)
			memcpy(to + done, from, bytes - done < 8 ? bytes - done : 8);
	}
	return 0;
}

static enum page_state made_page(void *ctx, uint64_t addr)
{
	struct made *h = ctx;

	return mappings_find(&h->maps, addr) ? PAGE_RESIDENT : PAGE_ABSENT;
}

static void no_refresh(void *ctx, uint64_t addr, size_t bytes)
{
	(void)ctx;
	(void)addr;
	(void)bytes;
}

static void add_map(struct made *h, uint64_t start, uint64_t bytes, const char *path, bool is_write)
{
	h->list[h->maps.list.cnt++] = (struct mapping){ .map = { .start_addr = start,
								 .end_addr = start + bytes,
								 .path = (char *)path,
								 .is_read = is_write || path[0],
								 .is_write = is_write },
							.rss_bytes = is_write ? bytes : 0 };
}

static void begin(struct made *h, uint64_t a, uint64_t b, uint64_t c)
{
	memset(h, 0, sizeof(*h));
	h->m = (struct memory){ .read = read_made,
				.page = made_page,
				.refresh = no_refresh,
				.ctx = h,
				.deadline_ns = now_ns() + 20 * NS_PER_S };
	assert_int_equal(memory_init(&h->m), 0);
	h->maps.list.data = h->list;
	h->parts[0] = a;
	h->parts[1] = b;
	h->parts[2] = c;
	for (int i = 0; i < PARTS; i++)
		assert_non_null(h->content[i] = calloc(1, PART_BYTES));
}

static struct runtimes found(struct made *h)
{
	struct runtimes rt;

	for (size_t i = 0; i < h->maps.list.cnt; i++)
		h->list[i].taken_bytes = 0;
	memory_forget(&h->m);
	assert_int_equal(runtimes_read(&h->m, &h->maps, &rt), 0);
	return rt;
}

static void end(struct made *h)
{
	for (int i = 0; i < PARTS; i++)
		free(h->content[i]);
	memory_release(&h->m);
}

/* What changes a word must make it no heap: of each its address and the value. */
struct wrong {
	uint64_t addr, value;
};

#define COUNTERS 0x7f0000000000ULL
#define JAVA_HEAP 0xf0000000ULL

static uint64_t add_counter(struct made *h, uint64_t addr, const char *name, uint64_t value,
			    const char *text)
{
	uint32_t *words = (uint32_t *)(void *)at(h, addr), data = 20 + 64;

	words[0] = data + 32;
	words[1] = 20;
	words[2] = text ? 32 : 0;
	*((char *)words + 12) = text ? 'B' : 'J';
	words[4] = data;
	snprintf((char *)words + 20, 64, "%s", name);
	if (text)
		snprintf((char *)words + data, 32, "%s", text);
	else
		memcpy((char *)words + data, &value, sizeof(value));
	return addr + words[0];
}

/* A heap of 64 MiB, of which 48 are committed and 10 are in use. is_g1: each generation may be all of it. */
static void make_java(struct made *h, bool is_g1)
{
	static const uint8_t head[] = { 0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1 };
	const uint32_t entries[2] = { 32, 7 };
	uint64_t to = COUNTERS + 32;

	begin(h, COUNTERS, 1, 1);
	add_map(h, JAVA_HEAP, 48 * MIB, "", true);
	add_map(h, JAVA_HEAP + 48 * MIB, 16 * MIB, "", false);
	/* an arena of glibc has the same size */
	add_map(h, JAVA_HEAP + 128 * MIB, MIB, "", true);
	add_map(h, JAVA_HEAP + 129 * MIB, 63 * MIB, "", false);
	add_map(h, COUNTERS, 32768, "/tmp/hsperfdata_root/7", true);
	h->list[4].is_shared = true;
	memcpy(at(h, COUNTERS), head, sizeof(head));
	memcpy(at(h, COUNTERS + 24), entries, sizeof(entries));
	to = add_counter(h, to, "sun.gc.policy.name", 0, is_g1 ? "GarbageFirst" : "Copy:MSC");
	to = add_counter(h, to, "sun.gc.generation.0.maxCapacity", (is_g1 ? 64 : 24) * MIB, NULL);
	to = add_counter(h, to, "sun.gc.generation.1.maxCapacity", is_g1 ? 64 * MIB + 8 : 40 * MIB,
			 NULL);
	to = add_counter(h, to, "sun.gc.generation.0.capacity", 20 * MIB, NULL);
	to = add_counter(h, to, "sun.gc.generation.1.capacity", 28 * MIB, NULL);
	to = add_counter(h, to, "sun.gc.generation.0.space.0.used", 4 * MIB, NULL);
	add_counter(h, to, "sun.gc.generation.1.space.0.used", 6 * MIB, NULL);
}

static void test_java(void **state)
{
	/* the magic; no room for an entry, or for its value; other sizes */
	static const struct wrong wrong[] = {
		{ COUNTERS, 0 },
		{ COUNTERS + 32, 5 },
		{ COUNTERS + 32, 1ULL << 31 },
		{ COUNTERS + 24, 0xfffffff0 | 7ULL << 32 },
		{ COUNTERS + 32 + 116 + 16, 0xfffffff0 },
		{ COUNTERS + 32 + 116 + 84, 25 * MIB },
		{ COUNTERS + 32 + 116 + 84, ~0ULL },
	};
	struct made h;
	struct runtimes rt;

	(void)state;
	for (int is_g1 = 0; is_g1 < 2; is_g1++) {
		make_java(&h, is_g1);
		rt = found(&h);
		assert_int_equal(rt.java.addr, JAVA_HEAP);
		assert_int_equal(rt.java.reserved, 64 * MIB);
		assert_int_equal(rt.java.committed, 48 * MIB);
		assert_int_equal(rt.java.used, 10 * MIB);
		assert_int_equal(rt.java.resident, 48 * MIB);
		/* more is committed than was counted: now two ranges may be it */
		h.list[0].map.end_addr += MIB;
		h.list[1].map.start_addr += MIB;
		assert_int_equal(found(&h).java.resident, 0);
		/* and one is an allocator's */
		h.maps.list.cnt = 2;
		h.list[2] = h.list[4];
		h.maps.list.cnt++;
		assert_int_equal(found(&h).java.committed, 49 * MIB);
		end(&h);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		make_java(&h, false);
		set(&h, wrong[i].addr, wrong[i].value);
		if (found(&h).java.resident || h.list[0].taken_bytes)
			fail_msg("case %zu is a heap", i);
		end(&h);
	}
}

#define V8_PAGE 0x10000000000ULL
#define V8_SPACE 0x20000000000ULL
#define V8_TABLE 0x400000ULL

static void make_v8(struct made *h, int version)
{
	/* address, size, heap, begin and end of the area, allocated, space: words of the header, or of what is apart */
	static const uint8_t words[3][7] = { { 10, 0, 2, 3, 4, 5, 8 },
					     { 1, 2, 3, 4, 5, 6, 9 },
					     { 1, 2, 8, 9, 7, 3, 10 } };
	uint64_t to = version == 13 ? V8_SPACE + 4096 : V8_PAGE;
	const uint64_t values[7] = { V8_PAGE,	       256 << 10, V8_SPACE + 8192, V8_PAGE + 4096,
				     V8_PAGE + 262144, 1000,	  V8_SPACE };

	begin(h, V8_PAGE, V8_SPACE, V8_TABLE);
	add_map(h, V8_TABLE, MIB, "/usr/bin/node", true);
	add_map(h, V8_PAGE, 512 << 10, "", true);
	add_map(h, V8_SPACE, MIB, "", true);
	if (version == 13)
		set(h, V8_PAGE + 8, to);
	for (int i = 0; i < 7; i++)
		set(h, to + 8ULL * words[version - 11][i], values[i]);
	set(h, V8_SPACE, V8_TABLE + 64);
	set(h, V8_SPACE + 8, V8_SPACE + 8192);
	set(h, V8_SPACE + 16, 2 | 7ULL << 32);
}

static void test_v8(void **state)
{
	static const struct wrong wrong[] = {
		{ V8_PAGE + 80, V8_PAGE + 8 },
		{ V8_PAGE, 100 },
		{ V8_PAGE, 1ULL << 60 },
		{ V8_PAGE, 1ULL << 30 },
		{ V8_PAGE + 24, V8_PAGE },
		{ V8_PAGE + 32, V8_PAGE + 4096 },
		{ V8_PAGE + 32, V8_PAGE + 262145 },
		{ V8_PAGE + 40, 262144 },
		{ V8_PAGE + 64, V8_PAGE },
		{ V8_SPACE, V8_SPACE },
		{ V8_SPACE + 8, V8_SPACE },
		{ V8_SPACE + 16, 99 },
	};
	struct made h;
	struct runtimes rt;

	(void)state;
	for (int version = 11; version <= 13; version++) {
		make_v8(&h, version);
		rt = found(&h);
		assert_int_equal(rt.v8.page_cnt, 1);
		assert_int_equal(rt.v8.isolate_cnt, 1);
		assert_int_equal(rt.v8.allocated, 1000);
		assert_int_equal(rt.v8.resident, 256 << 10);
		assert_int_equal(h.list[1].taken_bytes, 256 << 10);
		end(&h);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		make_v8(&h, 11);
		set(&h, wrong[i].addr, wrong[i].value);
		if (found(&h).v8.page_cnt || h.list[1].taken_bytes)
			fail_msg("case %zu is a page", i);
		end(&h);
	}
}

#define GO_HEAP 0xc000000000ULL
#define GO_SPANS 0x7f0000000000ULL
#define GO_SPAN(n) (GO_SPANS + 128 * 1024 + (n)*160ULL)

static void make_span(struct made *h, int n, uint32_t state_off, uint64_t first, uint64_t pages,
		      uint8_t state)
{
	uint64_t start = GO_HEAP + first * 8192;

	set(h, GO_SPAN(n) + 24, start);
	set(h, GO_SPAN(n) + 32, pages);
	*at(h, GO_SPAN(n) + state_off) = (char)state;
	set(h, GO_SPAN(n) + state_off + 13, start + 100);
	for (uint64_t i = first; i < first + pages && i < 8192; i++)
		set(h, GO_SPANS + i * 8, GO_SPAN(n));
}

/* 20 pages of objects, 10 free, 2 of stacks, and a span that goes on in the next arena, of which no array is seen. */
static void make_go(struct made *h, uint32_t state_off)
{
	begin(h, GO_SPANS, 1, 1);
	add_map(h, GO_HEAP, 72 * MIB, "", true);
	add_map(h, GO_HEAP + 72 * MIB, 56 * MIB, "", false);
	add_map(h, GO_SPANS, PART_BYTES, "", true);
	make_span(h, 0, state_off, 0, 20, 1);
	make_span(h, 1, state_off, 20, 10, 0);
	make_span(h, 2, state_off, 30, 2, 2);
	make_span(h, 3, state_off, 8192 - 128, 256, 1);
	/* another table that names spans, at the place where an array could begin, below it */
	set(h, GO_SPANS + 512 * 1024, GO_SPAN(0));
}

static void test_go(void **state)
{
	static const uint32_t state_offs[] = { 99, 107, 115 };
	static const struct wrong wrong[] = {
		{ GO_SPAN(0) + 24, GO_HEAP + 1 }, { GO_SPAN(0) + 24, ~0ULL },
		{ GO_SPAN(0) + 32, 0 },		  { GO_SPAN(0) + 32, 1ULL << 60 },
		{ GO_SPAN(0) + 112, GO_HEAP },	  { GO_SPAN(0) + 112, GO_HEAP + 200 * 8192 },
		{ GO_SPAN(0) + 96, 5ULL << 24 },
	};
	struct made h;
	struct runtimes rt;

	(void)state;
	for (size_t i = 0; i < sizeof(state_offs) / sizeof(*state_offs); i++) {
		make_go(&h, state_offs[i]);
		rt = found(&h);
		assert_int_equal(rt.go.arena_cnt, 1);
		assert_int_equal(rt.go.span_bytes, (20 + 2 + 256) * 8192);
		assert_int_equal(rt.go.live, (20 + 2 + 256) * 8192);
		assert_int_equal(rt.go.free, (8192 - 20 - 2 - 128) * 8192);
		assert_int_equal(h.list[0].taken_bytes, rt.go.live + rt.go.free);
		end(&h);
	}
	/* the second arena has no span in use */
	begin(&h, GO_SPANS, 1, 1);
	add_map(&h, GO_HEAP, 128 * MIB, "", true);
	add_map(&h, GO_SPANS, PART_BYTES, "", true);
	make_span(&h, 0, 99, 0, 20, 1);
	rt = found(&h);
	assert_int_equal(rt.go.arena_cnt, 2);
	assert_int_equal(rt.go.live, 20 * 8192);
	assert_int_equal(rt.go.free, (2 * 8192 - 20) * 8192);
	end(&h);
	/* a span that says it has 16 TiB */
	make_go(&h, 99);
	set(&h, GO_SPAN(3) + 32, 1ULL << 31);
	rt = found(&h);
	assert_true(rt.go.live <= 128 * MIB && rt.go.span_bytes <= 200 * MIB);
	assert_true(h.read_cnt < 100000);
	end(&h);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		make_go(&h, 99);
		set(&h, wrong[i].addr, wrong[i].value);
		if (found(&h).go.arena_cnt || h.list[0].taken_bytes)
			fail_msg("case %zu is an arena", i);
		end(&h);
	}
}

/* Words of each, changed at random: what is taken is never more than there is, and the reading ends. */
static void test_changed(void **state)
{
	uint32_t random = 1;

	(void)state;
	for (int i = 0; i < 24; i++) {
		struct made h;
		struct runtimes rt;

		if (i % 3 == 0)
			make_java(&h, i % 2);
		else if (i % 3 == 1)
			make_v8(&h, 11 + i % 2);
		else
			make_go(&h, 99);
		for (int k = 0; k < 8; k++) {
			uint64_t value;

			random = random * 1103515245 + 12345;
			value = random >> 8;
			random = random * 1103515245 + 12345;
			set(&h, h.parts[0] + random / 65536 % 4096 * 8,
			    k % 2 ? value : h.parts[0] + value % PART_BYTES);
		}
		rt = found(&h);
		for (size_t k = 0; k < h.maps.list.cnt; k++)
			assert_true(h.list[k].taken_bytes <= h.list[k].rss_bytes);
		assert_true(rt.java.resident + rt.v8.resident + rt.go.live + rt.go.free <=
			    100 * MIB);
		assert_true(h.read_cnt < 100000);
		end(&h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_java),
		cmocka_unit_test(test_v8),
		cmocka_unit_test(test_go),
		cmocka_unit_test(test_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
