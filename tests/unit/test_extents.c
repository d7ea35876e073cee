/* SPDX-License-Identifier: MIT */
/* test_extents.c - runs of numbers: never given out twice, never lost, merged when they come back. */
#include "unit.h"

#include "base/extents.h"

TEST(test_first_fit)
{
	struct extents x;
	uint32_t a, b, c;

	assert_int_equal(extents_init(&x, 10, 20), 0);
	assert_int_equal(extents_take(&x, 5, &a), 0);
	assert_int_equal(extents_take(&x, 5, &b), 0);
	assert_int_equal(extents_take(&x, 10, &c), 0);
	assert_int_equal(a, 10);
	assert_int_equal(b, 15);
	assert_int_equal(c, 20);
	assert_int_equal(extents_take(&x, 1, &a), -ENOSPC);
	assert_int_equal(extents_give(&x, 15, 5), 0);
	assert_int_equal(extents_take(&x, 6, &b), -ENOSPC);
	assert_int_equal(extents_take(&x, 3, &b), 0);
	assert_int_equal(b, 15);
	extents_release(&x);
}

TEST(test_merge)
{
	static const uint32_t order[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 2, 1, 0 },
					     { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 } };
	struct extents x;
	uint32_t first;

	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(extents_init(&x, 0, 30), 0);
		assert_int_equal(extents_take(&x, 30, &first), 0);
		for (size_t k = 0; k < 3; k++)
			assert_int_equal(extents_give(&x, order[i][k] * 10, 10), 0);
		assert_int_equal(x.free.cnt, 1);
		assert_int_equal(extents_take(&x, 30, &first), 0);
		extents_release(&x);
	}
}

#define NUMBER_CNT 1000

/* Against a table that says who has which number. */
TEST(test_random)
{
	static bool is_used[NUMBER_CNT];
	struct extent held[64] = { 0 };
	struct extents x;
	uint32_t used_cnt = 0;

	srand(1);
	assert_int_equal(extents_init(&x, 0, NUMBER_CNT), 0);
	for (int round = 0; round < 20000; round++) {
		struct extent *h = &held[rand() % 64];
		uint32_t cnt = 1 + rand() % 60;

		if (h->cnt) {
			for (uint32_t i = 0; i < h->cnt; i++)
				is_used[h->first + i] = false;
			assert_int_equal(extents_give(&x, h->first, h->cnt), 0);
			used_cnt -= h->cnt;
			h->cnt = 0;
		} else if (!extents_take(&x, cnt, &h->first)) {
			h->cnt = cnt;
			used_cnt += cnt;
			for (uint32_t i = 0; i < cnt; i++) {
				assert_false(is_used[h->first + i]);
				is_used[h->first + i] = true;
			}
		}
		assert_int_equal(extents_free_cnt(&x), NUMBER_CNT - used_cnt);
	}
	for (size_t i = 0; i < 64; i++)
		assert_int_equal(extents_give(&x, held[i].first, held[i].cnt), 0);
	assert_int_equal(x.free.cnt, 1);
	assert_int_equal(extents_free_cnt(&x), NUMBER_CNT);
	extents_release(&x);
}

RUN_TESTS()
