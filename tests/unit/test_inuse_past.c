/* SPDX-License-Identifier: MIT */
/* What processes held in the last hour and day, in bounded memory and little time; and the line of it. */
#include "unit.h"

#include "base/clock.h"
#include "http/past.h"

static struct inuse_past *past;
static float hour[INUSE_PAST_HOUR_CNT], day[INUSE_PAST_DAY_CNT];

static int set_up(void **state)
{
	return inuse_past_new(&past);
}

static int tear_down(void **state)
{
	inuse_past_free(past);
	return 0;
}

static bool begin(double seconds)
{
	return inuse_past_begin(past, (uint64_t)(seconds * NS_PER_S));
}

/* Its resident memory is always a MiB more. */
static int add(pid_t pid, uint64_t since_ns, double bytes)
{
	const double both[] = { bytes, bytes + (1 << 20) };

	return inuse_past_add(past, pid, since_ns, both);
}

static void moment(double seconds, double bytes)
{
	assert_true(begin(seconds));
	assert_int_equal(add(7, 1, bytes), 0);
	inuse_past_end(past);
}

TEST_WITH(points_are_ten_seconds_apart, set_up, tear_down)
{
	moment(1000, 1);
	assert_false(begin(1009));
	moment(1010, 2);
	moment(1020, NAN);
	moment(1050, 5); /* nobody looked for two of them */
	assert_int_equal(inuse_past_hour(past, 7, INUSE_PAST_INUSE, hour), 6);
	assert_true(hour[0] == 1 && hour[1] == 2 && isnan(hour[2]) && isnan(hour[3]) &&
		    isnan(hour[4]) && hour[5] == 5);
	assert_int_equal(inuse_past_day(past, 7, INUSE_PAST_INUSE, day), 1);
	assert_true(day[0] == 5);
	assert_int_equal(inuse_past_hour(past, 8, INUSE_PAST_INUSE, hour), 0);
}

TEST_WITH(an_hour_and_a_day_are_kept, set_up, tear_down)
{
	for (int i = 0; i < 3 * 8640; i++)
		moment(10.0 * i, i);
	assert_int_equal(inuse_past_hour(past, 7, INUSE_PAST_INUSE, hour), INUSE_PAST_HOUR_CNT);
	assert_true(hour[INUSE_PAST_HOUR_CNT - 1] == 25919 && hour[0] == 25919 - 359);
	assert_int_equal(inuse_past_day(past, 7, INUSE_PAST_INUSE, day), INUSE_PAST_DAY_CNT);
	for (int i = 2; i < INUSE_PAST_DAY_CNT; i++)
		assert_true(day[i] - day[i - 1] == 30 || i == INUSE_PAST_DAY_CNT - 1);
	assert_true(day[INUSE_PAST_DAY_CNT - 1] == 25919); /* the most so far */
	moment(10.0 * 3 * 8640 + 200000, 3); /* asleep for days */
	assert_int_equal(inuse_past_hour(past, 7, INUSE_PAST_INUSE, hour), 1);
	assert_int_equal(inuse_past_day(past, 7, INUSE_PAST_INUSE, day), 1);
	assert_true(day[0] == 3);
}

TEST_WITH(the_most_of_five_minutes, set_up, tear_down)
{
	moment(3000, 10);
	moment(3010, 90);
	moment(3020, 20);
	moment(3310, NAN);
	moment(3320, 4);
	assert_int_equal(inuse_past_day(past, 7, INUSE_PAST_INUSE, day), 2);
	assert_true(day[0] == 90 && day[1] == 4);
}

TEST_WITH(who_has_ended_is_forgotten, set_up, tear_down)
{
	moment(100, 1);
	assert_true(begin(110));
	assert_int_equal(add(8, 1, 5), 0);
	assert_int_equal(add(8, 1, 6), 0); /* the first counts */
	inuse_past_end(past);
	assert_int_equal(inuse_past_hour(past, 7, INUSE_PAST_INUSE, hour), 0);
	assert_int_equal(inuse_past_hour(past, 8, INUSE_PAST_INUSE, hour), 1);
	assert_true(hour[0] == 5);
	moment(120, 2); /* another one with its number begins anew */
	assert_int_equal(inuse_past_hour(past, 7, INUSE_PAST_INUSE, hour), 1);
}

/* Within a step the pid of one that ended is another one's. */
TEST_WITH(a_pid_that_is_used_again_begins_anew, set_up, tear_down)
{
	moment(3000, 90);
	moment(3010, 80);
	assert_true(begin(3020));
	assert_int_equal(add(7, 2, 5), 0);
	inuse_past_end(past);
	assert_int_equal(inuse_past_hour(past, 7, INUSE_PAST_INUSE, hour), 1);
	assert_true(hour[0] == 5);
	assert_int_equal(inuse_past_day(past, 7, INUSE_PAST_INUSE, day), 1);
	assert_true(day[0] == 5);
	assert_true(begin(3040));
	assert_int_equal(add(7, 2, 6), 0);
	inuse_past_end(past);
	assert_int_equal(inuse_past_hour(past, 7, INUSE_PAST_INUSE, hour), 3);
	assert_true(hour[0] == 5 && isnan(hour[1]) && hour[2] == 6);
}

/* 300 processes for a day: under 10 MB, and under 1 % of a CPU: 86 s of that day. */
TEST_WITH(it_is_cheap, set_up, tear_down)
{
	uint64_t begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID), took_ns;

	for (int i = 0; i < 8640; i++) {
		assert_true(begin(10.0 * i));
		for (pid_t pid = 1; pid <= 300; pid++)
			assert_int_equal(add(pid, 1, pid * 1e6), 0);
		inuse_past_end(past);
	}
	took_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns;
	assert_true(300 * INUSE_PAST_PROCESS_BYTES < 10000000);
	assert_true(took_ns < 86 * NS_PER_S);
}

TEST_WITH(there_is_a_bound, set_up, tear_down)
{
	assert_true(begin(10));
	assert_false(inuse_past_is_full(past));
	for (pid_t pid = 1; pid <= INUSE_PAST_PROCESSES_CAP; pid++)
		assert_int_equal(add(pid, 1, 1), 0);
	assert_int_equal(add(INUSE_PAST_PROCESSES_CAP + 1, 1, 1), -ENOSPC);
	assert_true(inuse_past_is_full(past));
	inuse_past_end(past);
	assert_int_equal(
		inuse_past_hour(past, INUSE_PAST_PROCESSES_CAP + 1, INUSE_PAST_INUSE, hour), 0);
}

TEST_WITH(resident_is_kept_beside_it, set_up, tear_down)
{
	moment(1000, 1);
	assert_true(begin(1010));
	assert_int_equal(inuse_past_add(past, 7, 1, (const double[]){ NAN, 5 }), 0);
	inuse_past_end(past);
	moment(1030, 2);
	assert_true(inuse_past_time_ns(past) == 1030 * NS_PER_S);
	assert_int_equal(inuse_past_hour(past, 7, INUSE_PAST_RESIDENT, hour), 4);
	assert_true(hour[0] == (1 << 20) + 1 && hour[1] == 5 && isnan(hour[2]) &&
		    hour[3] == (1 << 20) + 2);
	assert_int_equal(inuse_past_hour(past, 7, INUSE_PAST_INUSE, hour), 4);
	assert_true(hour[0] == 1 && isnan(hour[1]) && isnan(hour[2]) && hour[3] == 2);
	assert_int_equal(inuse_past_day(past, 7, INUSE_PAST_RESIDENT, day), 1);
	assert_true(day[0] == (1 << 20) + 2);
}

RUN_TESTS()
