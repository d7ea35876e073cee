/* SPDX-License-Identifier: MIT */
/* test_profile_lane.c - who is slow holds up nobody else: what becomes of files that are made by one child. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "result/profile_lane.h"

#define SLOW 1000 /* it does not end */
#define CRASH 1001
#define TOO_LONG 1002 /* longer than the quick lane has, then well */

/* In the child: as the test says. */
static int make(void *ctx, size_t i)
{
	const int *what = ctx;

	switch (what[i]) {
	case SLOW:
		for (;;)
			pause();
	case CRASH:
		_exit(1);
	case TOO_LONG:
		usleep((LANE_QUICK_FILE_NS + NS_PER_S / 2) / 1000);
		return 0;
	default:
		return what[i];
	}
}

/* As the event loop does; returns how long it took, in ms. */
static uint64_t run(struct profile_lane *l, const int *what, size_t cnt)
{
	uint64_t begin_ns = now_ns(), took_ns;

	assert_int_equal(profile_lane_start(l, cnt, 0, make, (void *)what), 0);
	assert_true(profile_lane_is_at_work(l));
	for (;;) {
		struct pollfd p = { .fd = l->worker.fd, .events = POLLIN };

		poll(&p, 1, 20);
		profile_lane_check(l);
		if (profile_lane_reap(l, &took_ns))
			break;
		assert_true(now_ns() < begin_ns + 20 * NS_PER_S);
	}
	assert_false(profile_lane_is_at_work(l));
	return (now_ns() - begin_ns) / 1000000;
}

static void check(const struct profile_lane *l, size_t i, enum lane_result want, int want_err)
{
	int err;

	assert_int_equal(profile_lane_result(l, i, &err), want);
	if (want == LANE_OVER)
		assert_int_equal(err, want_err);
}

static void test_all_well(void **state)
{
	const int what[] = { 0, -ESRCH, 0 };
	struct profile_lane l;

	(void)state;
	assert_int_equal(profile_lane_init(&l, LANE_QUICK), 0);
	assert_int_equal(profile_lane_cap(&l), LANE_FILES_CAP);
	run(&l, what, 3);
	check(&l, 0, LANE_OVER, 0);
	check(&l, 1, LANE_OVER, -ESRCH);
	check(&l, 2, LANE_OVER, 0);
	profile_lane_release(&l);
}

/* Whether it is given up by the child or does not let go: those before it have their files, those behind it are
 * in the next child, and it is for the slow lane. */
static void test_one_is_slow(void **state)
{
	static const int kinds[] = { -ETIME, SLOW, TOO_LONG };
	struct profile_lane l;

	(void)state;
	assert_int_equal(profile_lane_init(&l, LANE_QUICK), 0);
	for (size_t i = 0; i < 3; i++) {
		const int what[] = { 0, kinds[i], 0 };
		uint64_t ms = run(&l, what, 3);

		print_message("# %d: %d ms\n", kinds[i], (int)ms);
		assert_true(ms < LANE_QUICK_FILE_NS / 1000000 + 900);
		check(&l, 0, LANE_OVER, 0);
		check(&l, 1, LANE_TOO_SLOW, 0);
		check(&l, 2, LANE_NOT_BEGUN, 0);
	}
	profile_lane_release(&l);
}

/* It takes as long as it takes there. */
static void test_slow_lane(void **state)
{
	const int what = TOO_LONG;
	struct profile_lane l;

	(void)state;
	assert_int_equal(profile_lane_init(&l, LANE_SLOW), 0);
	assert_int_equal(profile_lane_cap(&l), 1);
	run(&l, &what, 1);
	check(&l, 0, LANE_OVER, 0);
	profile_lane_release(&l);
}

/* It is not tried for ever. */
static void test_crash(void **state)
{
	const int what[] = { 0, CRASH, 0 };
	struct profile_lane l;

	(void)state;
	assert_int_equal(profile_lane_init(&l, LANE_QUICK), 0);
	run(&l, what, 3);
	check(&l, 0, LANE_OVER, 0);
	check(&l, 1, LANE_OVER, -EINTR);
	check(&l, 2, LANE_NOT_BEGUN, 0);
	profile_lane_release(&l);
}

static void test_release_at_work(void **state)
{
	const int what = SLOW;
	struct profile_lane l;
	uint64_t begin_ns = now_ns();

	(void)state;
	assert_int_equal(profile_lane_init(&l, LANE_SLOW), 0);
	assert_int_equal(profile_lane_start(&l, 1, 0, make, (void *)&what), 0);
	profile_lane_release(&l);
	assert_true(now_ns() < begin_ns + NS_PER_S);
}

static void test_who_was_slow(void **state)
{
	struct slow_processes s = { 0 };

	(void)state;
	assert_false(slow_processes_has(&s, 0, 0));
	slow_processes_set(&s, 0, 0, true);
	slow_processes_set(&s, 5, 1, true);
	slow_processes_set(&s, 5, 1, true);
	slow_processes_set(&s, 6, 1, false);
	assert_true(slow_processes_has(&s, 0, 0));
	assert_true(slow_processes_has(&s, 5, 1));
	assert_false(slow_processes_has(&s, 5, 2)); /* another image, or process */
	assert_false(slow_processes_has(&s, 6, 1));
	slow_processes_set(&s, 5, 1, false);
	assert_false(slow_processes_has(&s, 5, 1));
	for (int pid = 1000; pid < 1000 + SLOW_PROCESSES_CAP; pid++)
		slow_processes_set(&s, pid, 1, true);
	for (int pid = 1000; pid < 1000 + SLOW_PROCESSES_CAP; pid++)
		assert_true(slow_processes_has(&s, pid, 1));
	assert_false(slow_processes_has(&s, 0, 0)); /* the oldest gave way */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_well),	cmocka_unit_test(test_one_is_slow),
		cmocka_unit_test(test_slow_lane),	cmocka_unit_test(test_crash),
		cmocka_unit_test(test_release_at_work), cmocka_unit_test(test_who_was_slow),
	};

	return cmocka_run_group_tests_name("profile_lane", tests, NULL, NULL);
}
