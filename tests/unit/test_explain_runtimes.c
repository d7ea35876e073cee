/* SPDX-License-Identifier: MIT */
/* test_explain_runtimes.c - heaps of the JVM, Go and V8, made word by word: found if all agrees, and left to their mappings if not. */
#include "unit.h"

#include "made_runtimes.h"

/* What changes a word must make it no heap: of each its address and the value. */
struct wrong {
	uint64_t addr, value;
};

TEST(test_java)
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
	each_case(c, wrong) {
		make_java(&h, false);
		set(&h, c->addr, c->value);
		if (found(&h).java.resident || h.list[0].taken_bytes)
			fail_msg("case %zu is a heap", (size_t)(c - wrong));
		end(&h);
	}
}

TEST(test_v8)
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
	each_case(c, wrong) {
		make_v8(&h, 11);
		set(&h, c->addr, c->value);
		if (found(&h).v8.page_cnt || h.list[1].taken_bytes)
			fail_msg("case %zu is a page", (size_t)(c - wrong));
		end(&h);
	}
}

TEST(test_go)
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

	each_case(c, state_offs) {
		make_go(&h, *c);
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
	each_case(c, wrong) {
		make_go(&h, 99);
		set(&h, c->addr, c->value);
		if (found(&h).go.arena_cnt || h.list[0].taken_bytes)
			fail_msg("case %zu is an arena", (size_t)(c - wrong));
		end(&h);
	}
}

/* Words of each, changed at random: what is taken is never more than there is, and the reading ends. */
TEST(test_changed)
{
	uint32_t random = 1;

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

RUN_TESTS()
