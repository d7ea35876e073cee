/* SPDX-License-Identifier: MIT */
/* test_ledger.c - the accounting rules: what is outstanding after which calls. */
#include "unit.h"

#include "../bpf/ledger.h"

static struct ledger *fresh(void)
{
	struct ledger *l = NULL;

	assert_int_equal(ledger_new(&l), 0);
	return l;
}

static void inuse_is(const struct ledger *l, uint64_t site, double objects, double bytes)
{
	struct estimate e = ledger_site(l, site).inuse;

	assert_true(e.objects == objects);
	assert_true(e.bytes == bytes);
}

TEST(test_alloc_and_free)
{
	struct ledger *l = fresh();
	struct ledger_sums sums;

	assert_int_equal(ledger_alloc(l, 0x10, 100, 1, 1), 0);
	assert_int_equal(ledger_alloc(l, 0x20, 200, 1, 0.5), 0);
	assert_int_equal(ledger_alloc(l, 0x30, 300, 2, 0), 0); /* not kept */
	inuse_is(l, 1, 3, 500);
	inuse_is(l, 2, 0, 0);
	ledger_release(l, 0x30);
	ledger_release(l, 0);
	ledger_release(l, 0x20);
	ledger_release(l, 0x20); /* the second free of an address frees nothing */
	inuse_is(l, 1, 1, 100);
	sums = ledger_site(l, 1);
	assert_true(sums.allocated.bytes == 500 && sums.freed.bytes == 400);
	assert_true(sums.allocated.bytes_variance == 200. * 200 * 0.5 / 0.25);
	assert_true(sums.inuse.bytes_variance == 0);
	assert_int_equal(ledger_counts(l).missed_frees, 0);
	ledger_free(l);
	ledger_free(NULL);
}

TEST(test_reuse_of_an_address)
{
	struct ledger *l = fresh();

	ledger_alloc(l, 0x10, 100, 1, 1);
	ledger_release(l, 0x10);
	ledger_alloc(l, 0x10, 7, 2, 1);
	inuse_is(l, 1, 0, 0);
	inuse_is(l, 2, 1, 7);
	assert_int_equal(ledger_counts(l).missed_frees, 0);
	/* again, and this time the free was not seen */
	ledger_alloc(l, 0x10, 50, 3, 1);
	inuse_is(l, 2, 0, 0);
	inuse_is(l, 3, 1, 50);
	assert_true(ledger_site(l, 2).freed.bytes == 7);
	assert_int_equal(ledger_counts(l).missed_frees, 1);
	assert_int_equal(ledger_block_cnt(l), 1);
	ledger_free(l);
}

TEST(test_failing_calls)
{
	struct ledger *l = fresh();

	ledger_alloc(l, 0, 1ULL << 60, 1, 1);
	ledger_alloc(l, 0, 1ULL << 60, 1, 0);
	inuse_is(l, 1, 0, 0);
	assert_int_equal(ledger_counts(l).failed_calls, 1);
	assert_true(ledger_total(l).allocated.bytes == 0);
	ledger_free(l);
}

TEST(test_realloc_rules)
{
	static const struct {
		double old_p, new_p;
		uint64_t new_addr; /* 0: failure */
		double old_inuse, new_inuse, freed;
		uint64_t failed;
	} cases[] = {
		{ 1, 1, 0x20, 0, 300, 100, 0 }, /* moved */
		{ 1, 1, 0x10, 0, 300, 100, 0 }, /* in place */
		{ 1, 0, 0x10, 0, 0, 100, 0 }, /* the new one not kept */
		{ 0, 1, 0x20, 0, 300, 0, 0 }, /* the old one was not kept */
		{ 1, 1, 0, 100, 0, 0, 1 }, /* failed: as before */
		{ 1, 0, 0, 100, 0, 0, 0 },	     { 0, 1, 0, 0, 0, 0, 1 },
		{ 0.25, 0.5, 0x20, 0, 600, 400, 0 },
	};

	each_case(c, cases) {
		struct ledger *l = fresh();
		struct ledger_block block;
		bool held;

		ledger_alloc(l, 0x10, 100, 1, c->old_p);
		ledger_realloc_enter(l, 0x10, &held, &block);
		assert_int_equal(held, c->old_p > 0);
		assert_null(ledger_find(l, 0x10));
		assert_int_equal(
			ledger_realloc_leave(l, held, &block, c->new_addr, 300, 2, c->new_p), 0);
		assert_true(ledger_site(l, 1).inuse.bytes == c->old_inuse);
		assert_true(ledger_site(l, 2).inuse.bytes == c->new_inuse);
		assert_true(ledger_total(l).freed.bytes == c->freed);
		assert_int_equal(ledger_counts(l).failed_calls, c->failed);
		assert_int_equal(ledger_counts(l).missed_frees, 0);
		ledger_free(l);
	}
}

/* Another thread is given the old address while realloc is still under way. */
TEST(test_address_taken_during_realloc)
{
	struct ledger *l = fresh();
	struct ledger_block block;
	bool held;

	ledger_alloc(l, 0x10, 100, 1, 1);
	ledger_realloc_enter(l, 0x10, &held, &block);
	ledger_alloc(l, 0x10, 11, 3, 1);
	ledger_realloc_leave(l, held, &block, 0x40, 300, 2, 1);
	inuse_is(l, 1, 0, 0);
	inuse_is(l, 2, 1, 300);
	inuse_is(l, 3, 1, 11);
	assert_int_equal(ledger_counts(l).missed_frees, 0);
	ledger_free(l);
}

/* Whatever happens: in-use = allocated - freed, and equal to a walk of an independent array. */
TEST(test_random_calls)
{
	struct {
		uint64_t size;
		uint64_t site;
	} shadow[256] = { 0 };
	struct ledger *l = fresh();
	uint64_t seed = 99, bytes = 0, cnt = 0;
	struct ledger_sums total;

	for (int i = 0; i < 50000; i++) {
		uint64_t slot, size;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		slot = seed >> 56;
		size = (seed >> 33) % 1000 + 1;
		if (shadow[slot].size) {
			ledger_release(l, slot + 1);
			bytes -= shadow[slot].size;
			cnt--;
			shadow[slot].size = 0;
		} else {
			assert_int_equal(ledger_alloc(l, slot + 1, size, seed % 7, 1), 0);
			bytes += size;
			cnt++;
			shadow[slot].size = size;
		}
	}
	total = ledger_total(l);
	assert_true(total.inuse.bytes == bytes && total.inuse.objects == cnt);
	assert_true(total.allocated.bytes - total.freed.bytes == bytes);
	assert_int_equal(ledger_block_cnt(l), cnt);
	for (uint64_t slot = 0; slot < 256; slot++) {
		const struct ledger_block *block = ledger_find(l, slot + 1);

		assert_int_equal(block ? block->size_bytes : 0, shadow[slot].size);
	}
	ledger_free(l);
}

RUN_TESTS()
