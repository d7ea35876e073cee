/* SPDX-License-Identifier: MIT */
/* test_push_time.c - when a push is due, and how long to wait after failures. */
#include "unit.h"

#include "base/clock.h"
#include "serve/push_queue.h"

#define START (1000 * NS_PER_S)

TEST(due_once_in_each_interval)
{
	struct push_clock c = { 0 };
	uint64_t first;

	push_clock_set(&c, 10 * NS_PER_S, START);
	assert_false(push_clock_is_due(&c, START));
	assert_in_range(push_clock_wait_ms(&c, START), 1, 10000);
	first = c.due_ns;
	assert_in_range(first, START + 1, START + 10 * NS_PER_S);
	assert_int_equal(push_clock_wait_ms(&c, first - 1), 1);
	assert_false(push_clock_is_due(&c, first - 1));
	assert_int_equal(push_clock_wait_ms(&c, first), 0);
	assert_true(push_clock_is_due(&c, first + NS_PER_S)); /* looked at late: the next is not */
	assert_false(push_clock_is_due(&c, first + 10 * NS_PER_S - 1));
	assert_true(push_clock_is_due(&c, first + 10 * NS_PER_S));
	assert_int_equal(push_clock_wait_ms(&c, first + 11 * NS_PER_S), 9000);
}

TEST(missed_intervals_are_not_made_up_for)
{
	struct push_clock c = { 0 };
	uint64_t late = START + 3600 * NS_PER_S;

	push_clock_set(&c, 10 * NS_PER_S, START);
	assert_true(push_clock_is_due(&c, late));
	assert_false(push_clock_is_due(&c, late));
	assert_false(push_clock_is_due(&c, late + 10 * NS_PER_S - 1));
	assert_true(push_clock_is_due(&c, late + 10 * NS_PER_S));
}

TEST(the_first_time_is_random)
{
	uint64_t sum = 0, min = UINT64_MAX, max = 0;

	for (int i = 0; i < 1000; i++) {
		struct push_clock c = { 0 };
		uint64_t wait;

		push_clock_set(&c, 1000, START);
		wait = c.due_ns - START;
		sum += wait;
		min = wait < min ? wait : min;
		max = wait > max ? wait : max;
	}
	assert_in_range(min, 1, 100);
	assert_in_range(max, 900, 1000);
	assert_in_range(sum / 1000, 400, 600);
}

TEST(another_interval_begins_anew)
{
	struct push_clock c = { 0 };
	uint64_t due;

	assert_false(push_clock_is_due(&c, START));
	assert_int_equal(push_clock_wait_ms(&c, START), -1);
	push_clock_set(&c, NS_PER_S, START);
	due = c.due_ns;
	push_clock_set(&c, NS_PER_S, START + NS_PER_S); /* a reload that changes nothing here */
	assert_int_equal(c.due_ns, due);
	push_clock_set(&c, 5 * NS_PER_S, START + 60 * NS_PER_S);
	assert_in_range(c.due_ns, START + 60 * NS_PER_S + 1, START + 65 * NS_PER_S);
	push_clock_set(&c, 0, START);
	assert_false(push_clock_is_due(&c, UINT64_MAX));
}

TEST(tries_double_up_to_the_longest)
{
	static const uint64_t longest[] = { 100, 100, 200, 400, 500, 500 };

	for (unsigned int fails = 0; fails < 6; fails++)
		for (int i = 0; i < 100; i++)
			assert_in_range(push_retry_delay_ns(100, 500, fails), longest[fails] / 2,
					longest[fails]);
	assert_in_range(push_retry_delay_ns(NS_PER_S, 60 * NS_PER_S, UINT32_MAX), 30 * NS_PER_S,
			60 * NS_PER_S);
}

RUN_TESTS()
