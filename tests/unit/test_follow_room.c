/* SPDX-License-Identifier: MIT */
/* test_follow_room.c - one user's processes leave places and time to those of others; heaptap's own time. */
#include "unit.h"

#include "serve/follow.h"

#define PLACES 90
#define OLD UINT64_MAX

TEST(places)
{
	struct follow_room r;
	size_t cnt = 0;

	follow_room_init(&r, PLACES);
	follow_room_begin(&r);
	for (; !follow_room_check(&r, 1000, cnt, OLD); cnt++)
		follow_room_add(&r, 1000);
	assert_int_equal(cnt, PLACES * 2 / 3);
	assert_int_equal(follow_room_check(&r, 1000, cnt, OLD), -EDQUOT);
	/* There is room for others, and root takes what there is. */
	for (; !follow_room_check(&r, 1001, cnt, OLD); cnt++)
		follow_room_add(&r, 1001);
	assert_int_equal(cnt, PLACES * 2 / 3 + PLACES * 2 / 9);
	assert_int_equal(follow_room_check(&r, 1002, cnt, OLD), 0);
	assert_int_equal(follow_room_check(&r, 1002, PLACES, OLD), 0); /* who has none may try */
	assert_int_equal(follow_room_check(&r, 0, PLACES, OLD), 0);
	/* Those who have ended are no longer among them. */
	follow_room_begin(&r);
	assert_int_equal(follow_room_check(&r, 1000, 0, OLD), 0);
	follow_room_release(&r);
}

TEST(time_of_a_scan)
{
	struct follow_room r;

	follow_room_init(&r, PLACES);
	follow_room_begin(&r);
	follow_room_spend(&r, 1000, ROOM_USER_NS - 1);
	assert_int_equal(follow_room_check(&r, 1000, 1, OLD), 0);
	follow_room_spend(&r, 1000, 1);
	assert_int_equal(follow_room_check(&r, 1000, 1, OLD), -EAGAIN);
	assert_int_equal(follow_room_check(&r, 1001, 1, OLD), 0);
	follow_room_spend(&r, 0, ROOM_USER_NS);
	assert_int_equal(follow_room_check(&r, 0, 1, OLD), 0);
	follow_room_spend(&r, 1001, ROOM_SCAN_NS - 2 * ROOM_USER_NS);
	assert_int_equal(follow_room_check(&r, 0, 1, OLD), -EAGAIN);
	assert_int_equal(follow_room_check(&r, 1002, 1, OLD), -EAGAIN);
	follow_room_begin(&r);
	assert_int_equal(follow_room_check(&r, 1000, 1, OLD), 0);
	follow_room_release(&r);
}

/* Where processes come and go, heaptap's own time is for those that live long. */
TEST(own_cost)
{
	const uint64_t young = ROOM_AGE_NS - 1;
	struct follow_room r;
	uint64_t now = 1, cpu_ns = 1000 * NS_PER_S; /* what it took before counts for nothing */

	follow_room_init(&r, PLACES);
	follow_room_note_own(&r, now, cpu_ns);
	assert_int_equal(follow_room_check(&r, 0, 1, young), 0);

	/* a burst: a second as busy as can be */
	follow_room_note_own(&r, now += NS_PER_S, cpu_ns += NS_PER_S);
	assert_int_equal(follow_room_check(&r, 0, 1, young), 0);
	for (int i = 0; i < 60; i++)
		follow_room_note_own(&r, now += NS_PER_S, cpu_ns += NS_PER_S / 10);
	assert_int_equal(follow_room_check(&r, 0, 1, young), 0);

	for (int i = 0; i < 60; i++)
		follow_room_note_own(&r, now += NS_PER_S, cpu_ns += NS_PER_S / 7);
	assert_int_equal(follow_room_check(&r, 0, 1, young), -EAGAIN);
	assert_int_equal(follow_room_check(&r, 0, 1, ROOM_AGE_NS), 0);
	follow_room_begin(&r); /* each scan */
	assert_int_equal(follow_room_check(&r, 0, 1, young), -EAGAIN);

	/* A helper was replaced, and its time is lost: that is no time gained. */
	follow_room_note_own(&r, now += NS_PER_S, cpu_ns -= NS_PER_S);
	assert_int_equal(follow_room_check(&r, 0, 1, young), -EAGAIN);
	follow_room_note_own(&r, now += 10 * NS_PER_S, cpu_ns);
	assert_int_equal(follow_room_check(&r, 0, 1, young), 0);
	follow_room_release(&r);
}

RUN_TESTS()
