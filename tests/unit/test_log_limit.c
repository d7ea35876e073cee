/* SPDX-License-Identifier: MIT */
/* test_log_limit.c - how many lines of many are said, and when. */
#include "unit.h"

#include "base/log.h"

TEST(one_in_each_interval)
{
	struct log_limit l = { .every_ns = 60, .burst = 1 };

	assert_true(log_limit_allows(&l, 1000));
	assert_false(log_limit_allows(&l, 1000));
	assert_false(log_limit_allows(&l, 1059));
	assert_true(log_limit_allows(&l, 1060));
	assert_int_equal(log_limit_left_out(&l), 2);
	assert_int_equal(log_limit_left_out(&l), 0);
	assert_true(log_limit_allows(&l, 5000));
	assert_int_equal(log_limit_left_out(&l), 0);
}

TEST(the_first_ones_all)
{
	struct log_limit l = { .every_ns = 10, .burst = 5 };
	unsigned int said = 0;

	for (int i = 0; i < 100; i++)
		said += log_limit_allows(&l, 1000);
	assert_int_equal(said, 5);
	/* One more for each interval that passes, and no more. */
	for (uint64_t now = 1001; now <= 1100; now++)
		said += log_limit_allows(&l, now);
	assert_int_equal(said, 15);
	assert_int_equal(log_limit_left_out(&l), 200 - 15);
	/* After a quiet time as at first. */
	for (int i = 0; i < 100; i++)
		said += log_limit_allows(&l, 100000);
	assert_int_equal(said, 20);
}

RUN_TESTS()
