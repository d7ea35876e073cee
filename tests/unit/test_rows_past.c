/* SPDX-License-Identifier: MIT */
/*
 * test_rows_past.c - what was resident of processes in the last hour and day: consistent readings, in bounded memory; what is not
 * known is never 0, and what an ended process had is kept for its last profile.
 */
#include "unit.h"

#include "base/clock.h"
#include "http/past.h"

#define MIB (1LL << 20)
#define IMAGE ((7ULL << 32) | 1)

static struct rows_past *past;

static int set_up(void **state)
{
	return rows_past_new(&past);
}

static int tear_down(void **state)
{
	rows_past_free(past);
	return 0;
}

static struct resident_reading reading(int64_t live_mib, int64_t files_mib)
{
	struct resident_reading r = { .is_known = true, .is_proved = true, .row_cnt = 2 };

	snprintf(r.rows[0].name, sizeof(r.rows[0].name), "%s", row_name(ROW_LIVE));
	r.rows[0].bytes = live_mib * MIB;
	snprintf(r.rows[1].name, sizeof(r.rows[1].name), "%s", row_name(ROW_FILES));
	r.rows[1].bytes = files_mib * MIB;
	r.rss_bytes = (uint64_t)((live_mib + files_mib) * MIB);
	return r;
}

static struct resident_reading failure(const char *why)
{
	struct resident_reading r = { 0 };

	snprintf(r.why, sizeof(r.why), "%s", why);
	return r;
}

static int add(uint64_t image, uint64_t seconds, struct resident_reading r)
{
	return rows_past_add(past, image, seconds * NS_PER_S, (seconds + 60) * NS_PER_S, &r);
}

TEST_WITH(first_and_newest, set_up, tear_down)
{
	const struct rows_past_image *i;

	assert_null(rows_past_find(past, IMAGE));
	assert_false(rows_past_is_known(NULL));
	assert_int_equal(add(IMAGE, 1000, failure("denied")), 0);
	i = rows_past_find(past, IMAGE);
	assert_false(rows_past_is_known(i));
	assert_string_equal(i->why, "denied");
	assert_true(!i->first_ns && !i->seen && i->due_ns == 1060 * NS_PER_S);
	assert_true(isnan(i->hour[0].rows[ROW_LIVE]));

	assert_int_equal(add(IMAGE, 1060, reading(10, 3)), 0);
	assert_int_equal(add(IMAGE, 1120, reading(20, 0)), 0);
	i = rows_past_find(past, IMAGE);
	assert_true(rows_past_is_known(i));
	assert_int_equal(i->first.rss_bytes, 13 * MIB);
	assert_int_equal(i->last.rss_bytes, 20 * MIB);
	assert_true(i->first_ns == 1060 * NS_PER_S && i->last_ns == 1120 * NS_PER_S);
	assert_int_equal(i->seen, 1u << ROW_LIVE | 1u << ROW_FILES);
	assert_int_equal(rows_past_bytes(i, ROW_LIVE), 20 * MIB);
	assert_int_equal(rows_past_bytes(i, ROW_STACKS), 0);
	assert_int_equal(i->hour_cnt, 3);
	assert_true(i->hour[1].rows[ROW_FILES] == 3 * MIB && i->hour[2].rows[ROW_FILES] == 0);

	/* a failure leaves the newest that is known */
	assert_int_equal(add(IMAGE, 1180, failure("")), 0);
	i = rows_past_find(past, IMAGE);
	assert_false(rows_past_is_known(i));
	assert_string_equal(i->why, "it failed");
	assert_int_equal(i->last.rss_bytes, 20 * MIB);
	assert_int_equal(add(IMAGE, 1240, reading(30, 0)), 0);
	assert_true(rows_past_is_known(rows_past_find(past, IMAGE)));
}

TEST_WITH(a_row_that_there_is_not, set_up, tear_down)
{
	struct resident_reading r = reading(1, 1);

	snprintf(r.rows[1].name, sizeof(r.rows[1].name), "hostile");
	assert_int_equal(add(IMAGE, 1000, r), -EINVAL);
	assert_false(rows_past_is_known(rows_past_find(past, IMAGE)));
	assert_true(isnan(rows_past_find(past, IMAGE)->hour[0].rows[ROW_LIVE]));
}

/* An hour of all readings, a day of the largest in each quarter of an hour: those whole, so rows add up. */
TEST_WITH(an_hour_and_a_day, set_up, tear_down)
{
	const struct rows_past_image *i;
	uint64_t t = 900 * 100; /* a quarter begins */

	for (uint64_t k = 0; k < 3 * 24 * 60; k++, t += 60)
		assert_int_equal(add(IMAGE, t, reading(k % 15 == 7 ? 50 : 10, k % 15)), 0);
	i = rows_past_find(past, IMAGE);
	assert_int_equal(i->hour_cnt, ROWS_PAST_HOUR_CNT);
	assert_true(i->hour[59].time_ns == (t - 60) * NS_PER_S);
	assert_true(i->hour[0].time_ns == (t - 60 * 60) * NS_PER_S);
	assert_int_equal(i->day_cnt, ROWS_PAST_DAY_CNT);
	for (size_t k = 0; k < i->day_cnt; k++) {
		assert_true(i->day[k].rows[ROW_LIVE] == 50 * MIB);
		assert_true(i->day[k].rows[ROW_FILES] == 7 * MIB);
	}
	/* after a pause of hours only that reading is of the last hour */
	assert_int_equal(add(IMAGE, t + 7200, reading(1, 1)), 0);
	i = rows_past_find(past, IMAGE);
	assert_int_equal(i->hour_cnt, 1);
	assert_true(i->day[0].time_ns + ROWS_PAST_DAY_NS >= (t + 7200) * NS_PER_S);
}

/* A reading that failed does not hide one of the same quarter that did not. */
TEST_WITH(failures_in_a_day, set_up, tear_down)
{
	const struct rows_past_image *i;

	add(IMAGE, 9000, failure("x"));
	add(IMAGE, 9060, reading(5, 0));
	add(IMAGE, 9120, failure("x"));
	i = rows_past_find(past, IMAGE);
	assert_int_equal(i->day_cnt, 1);
	assert_true(i->day[0].rows[ROW_LIVE] == 5 * MIB);
	assert_int_equal(i->hour_cnt, 3);
}

TEST_WITH(too_many_and_ended, set_up, tear_down)
{
	for (uint64_t k = 0; k < ROWS_PAST_IMAGES_CAP; k++)
		assert_int_equal(add(k << 32 | 1, 1000, reading((int64_t)k, 1)), 0);
	assert_true(rows_past_is_full(past));
	assert_int_equal(add(IMAGE << 8, 1001, reading(1, 1)), -ENOSPC);
	/* another program of a process has another past */
	assert_null(rows_past_find(past, (7ULL << 32) | 2));
	for (uint64_t k = 0; k < ROWS_PAST_IMAGES_CAP; k += 2)
		rows_past_keep(past, k << 32 | 1, 1020 * NS_PER_S);
	rows_past_keep(past, 12345, 1020 * NS_PER_S);
	rows_past_forget(past, 1030 * NS_PER_S);
	assert_true(rows_past_is_full(past));
	rows_past_forget(past, 1031 * NS_PER_S);
	assert_false(rows_past_is_full(past));
	for (uint64_t k = 0; k < ROWS_PAST_IMAGES_CAP; k++) {
		const struct rows_past_image *i = rows_past_find(past, k << 32 | 1);

		assert_true((i != NULL) == !(k % 2));
		if (i)
			assert_int_equal(i->last.rss_bytes, (uint64_t)(k + 1) * MIB);
	}
	rows_past_forget(past, 2000 * NS_PER_S);
	assert_null(rows_past_find(past, 1));
}

RUN_TESTS()
