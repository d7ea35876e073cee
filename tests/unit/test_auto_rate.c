/* SPDX-License-Identifier: MIT */
/* test_auto_rate.c - how finely is sampled when nobody says. */
#include "unit.h"

#include "base/clock.h"
#include "track/budget.h"

#define LOOK_NS (100 * NS_PER_MS)

static struct auto_rate rate;
static uint64_t at_ns;
static double samples; /* so far, at the rates that there were */
static unsigned int change_cnt;

/* For so long it allocates so much, in blocks that are much smaller than any rate. */
static void run(double s, double bytes_per_s)
{
	for (double done = 0; done < s; done += 0.1) {
		at_ns += LOOK_NS;
		samples += bytes_per_s / 10 / (double)rate.rate_bytes;
		change_cnt += auto_rate_update(&rate, at_ns, (uint64_t)samples, true);
	}
}

static int begin(void **state)
{
	at_ns = 1000 * NS_PER_S;
	samples = 0;
	change_cnt = 0;
	auto_rate_begin(&rate, at_ns);
	return 0;
}

TEST_WITH(test_little, begin, NULL)
{
	assert_int_equal(rate.rate_bytes, AUTO_RATE_USUAL);
	run(0.15, 4e6);
	assert_int_equal(rate.rate_bytes, AUTO_RATE_USUAL);
	run(29.85, 4e6);
	assert_int_equal(rate.rate_bytes, 8 << 10);
	assert_int_equal(change_cnt, 1);
	assert_in_range(samples, 29.7 * 4e6 / 8192 * 0.98, 29.7 * 4e6 / 8192 * 1.05);
}

TEST_WITH(test_idle, begin, NULL)
{
	run(3, 0);
	assert_int_equal(rate.rate_bytes, AUTO_RATE_FINEST);
}

TEST_WITH(test_much, begin, NULL)
{
	run(60, 1e9);
	assert_int_equal(rate.rate_bytes, AUTO_RATE_USUAL);
	assert_int_equal(change_cnt, 0);
	assert_int_equal(auto_rate_mean(&rate), AUTO_RATE_USUAL);
}

/* Many at once: the usual rate with the next look, and not finer again soon. */
TEST_WITH(test_burst, begin, NULL)
{
	double before;

	run(5, 1e4);
	assert_int_equal(rate.rate_bytes, AUTO_RATE_FINEST);
	before = samples;
	run(0.1, 1e9);
	assert_int_equal(rate.rate_bytes, AUTO_RATE_USUAL);
	assert_true(samples - before < 1e8 / 4096 + 1);
	run(4, 1e4);
	assert_int_equal(rate.rate_bytes, AUTO_RATE_USUAL);
	run(30, 1e4);
	assert_int_equal(rate.rate_bytes, AUTO_RATE_FINEST);
}

/* A load that swings by a half does not change it all the time. */
TEST_WITH(test_calm, begin, NULL)
{
	for (int i = 0; i < 100; i++)
		run(5, i % 2 ? 1.6e6 : 2.4e6);
	assert_true(change_cnt <= 2);
}

/* For days: there is room for those that are alive. */
TEST_WITH(test_long, begin, NULL)
{
	run(24 * 3600.0, 4e6);
	assert_int_equal(rate.rate_bytes, AUTO_RATE_USUAL);
	/* Beyond what there are at the usual rate. */
	assert_true(samples - 24 * 3600 * 4e6 / 65536 < 500000);
}

TEST_WITH(test_given_up, begin, NULL)
{
	run(5, 1e4);
	at_ns += LOOK_NS;
	assert_true(auto_rate_update(&rate, at_ns, (uint64_t)samples, false));
	assert_int_equal(rate.rate_bytes, AUTO_RATE_USUAL);
	assert_false(
		auto_rate_update(&rate, at_ns, (uint64_t)samples, false)); /* no time has passed */
}

/* What is seen with 1/64 Ki for one second and 1/8 Ki for 29 */
TEST_WITH(test_mean, begin, NULL)
{
	assert_int_equal(auto_rate_mean(&rate), AUTO_RATE_USUAL);
	run(30, 4e6);
	assert_in_range(auto_rate_mean(&rate), 8192, 8600);
}

RUN_TESTS()
