/* SPDX-License-Identifier: MIT */
/* test_follow_room.c - one user's processes leave places and time to those of others. */
#include "unit.h"

#include "serve/follow.h"

#define PLACES 90

static void places(void **state)
{
	struct follow_room r;
	size_t cnt = 0;

	follow_room_init(&r, PLACES);
	follow_room_begin(&r);
	for (; !follow_room_check(&r, 1000, cnt); cnt++)
		follow_room_add(&r, 1000);
	assert_int_equal(cnt, PLACES * 2 / 3);
	assert_int_equal(follow_room_check(&r, 1000, cnt), -EDQUOT);
	/* There is room for others, and root takes what there is. */
	for (; !follow_room_check(&r, 1001, cnt); cnt++)
		follow_room_add(&r, 1001);
	assert_int_equal(cnt, PLACES * 2 / 3 + PLACES * 2 / 9);
	assert_int_equal(follow_room_check(&r, 1002, cnt), 0);
	assert_int_equal(follow_room_check(&r, 1002, PLACES), 0); /* who has none may try */
	assert_int_equal(follow_room_check(&r, 0, PLACES), 0);
	/* Those who have ended are no longer among them. */
	follow_room_begin(&r);
	assert_int_equal(follow_room_check(&r, 1000, 0), 0);
	follow_room_release(&r);
}

static void time_of_a_scan(void **state)
{
	struct follow_room r;

	follow_room_init(&r, PLACES);
	follow_room_begin(&r);
	follow_room_spend(&r, 1000, ROOM_USER_NS - 1);
	assert_int_equal(follow_room_check(&r, 1000, 1), 0);
	follow_room_spend(&r, 1000, 1);
	assert_int_equal(follow_room_check(&r, 1000, 1), -EAGAIN);
	assert_int_equal(follow_room_check(&r, 1001, 1), 0);
	follow_room_spend(&r, 0, ROOM_USER_NS);
	assert_int_equal(follow_room_check(&r, 0, 1), 0);
	follow_room_spend(&r, 1001, ROOM_SCAN_NS - 2 * ROOM_USER_NS);
	assert_int_equal(follow_room_check(&r, 0, 1), -EAGAIN);
	assert_int_equal(follow_room_check(&r, 1002, 1), -EAGAIN);
	follow_room_begin(&r);
	assert_int_equal(follow_room_check(&r, 1000, 1), 0);
	follow_room_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places),
		cmocka_unit_test(time_of_a_scan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
