/* SPDX-License-Identifier: MIT */
/* Whether a process grows, from the line of what it held. */
#include "unit.h"

#include "http/past.h"

#define CNT 360
#define STEP_S 10
#define MIB 1048576.0

static float line[CNT];
static struct inuse_growth g;

static enum inuse_trend trend(size_t cnt, double error_bytes)
{
	inuse_growth(line, cnt, STEP_S, error_bytes, &g);
	return g.trend;
}

/* A leak of 1 MiB a minute, beside a cache that goes up and down. */
TEST(a_leak_grows_at_its_pace)
{
	for (size_t i = 0; i < CNT; i++)
		line[i] = (float)(50 * MIB + i * MIB / 6 + (i % 7) * MIB);
	assert_int_equal(trend(CNT, 0), INUSE_TREND_GROWS);
	assert_true(fabs(g.bytes_per_min / MIB - 1) < 0.05);
	assert_true(fabs(g.minutes - 59.8) < 0.1);
	assert_string_equal(inuse_trend_text(g.trend), "grows");
	for (size_t i = 0; i < CNT; i++)
		line[i] = -line[i] + (float)(500 * MIB);
	assert_int_equal(trend(CNT, 0), INUSE_TREND_SHRINKS);
	assert_true(g.bytes_per_min < 0);
}

/* What fills once is no leak, and nor are ups and downs. */
TEST(what_is_flat_now_does_not_grow)
{
	for (size_t i = 0; i < CNT; i++)
		line[i] = (float)((i < CNT / 4 ? i : CNT / 4) * MIB);
	assert_int_equal(trend(CNT, 0), INUSE_TREND_GREW);
	for (size_t i = 0; i < CNT; i++)
		line[i] = (float)(100 * MIB + (i * 7919 % 40) * MIB);
	assert_int_equal(trend(CNT, 0), INUSE_TREND_STEADY);
	for (size_t i = 0; i < CNT; i++)
		line[i] = 7;
	assert_int_equal(trend(CNT, 0), INUSE_TREND_STEADY);
	assert_true(g.bytes_per_min == 0);
}

/* Growth that sampling alone could show is none. */
TEST(sampling_is_no_growth)
{
	for (size_t i = 0; i < CNT; i++)
		line[i] = (float)(50 * MIB + i * MIB / 60);
	assert_int_equal(trend(CNT, 0), INUSE_TREND_GROWS);
	assert_int_equal(trend(CNT, 3 * MIB), INUSE_TREND_STEADY);
}

TEST(too_little_is_known)
{
	for (size_t i = 0; i < CNT; i++)
		line[i] = (float)(i * MIB);
	assert_int_equal(trend(0, 0), INUSE_TREND_UNKNOWN);
	assert_int_equal(trend(INUSE_GROWTH_POINTS_LEAST - 1, 0), INUSE_TREND_UNKNOWN);
	assert_int_equal(trend(INUSE_GROWTH_POINTS_LEAST, 0), INUSE_TREND_GROWS);
	assert_null(inuse_trend_text(INUSE_TREND_UNKNOWN));
	/* what was not known at both ends does not count as time; a quarter without a value is not passed over */
	for (size_t i = 0; i < 20; i++)
		line[i] = line[40 + i] = NAN;
	assert_int_equal(trend(60, 0), INUSE_TREND_GROWS);
	assert_true(fabs(g.minutes - 19.0 / 6) < 0.01);
	for (size_t i = 25; i < 30; i++)
		line[i] = NAN;
	assert_int_equal(trend(60, 0), INUSE_TREND_UNKNOWN);
	for (size_t i = 0; i < CNT; i++)
		line[i] = NAN;
	assert_int_equal(trend(CNT, 0), INUSE_TREND_UNKNOWN);
}

RUN_TESTS()
