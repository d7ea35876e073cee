/* SPDX-License-Identifier: MIT */
/*
 * test_instances.c - what is known of images when their process executes another program, and what of their
 * time went unseen.
 */
#include "unit.h"

#include "base/clock.h"
#include "track/instances.h"

#define PID 77

static struct instances is;

static int set_up(void **state)
{
	instances_init(&is);
	return 0;
}

static int tear_down(void **state)
{
	instances_release(&is);
	return 0;
}

static void begin(uint32_t generation, uint32_t kind, uint64_t time_ns)
{
	const struct ht_event event = { .kind = kind, .comm = "program", .time_ns = time_ns };

	instances_note_begin(&is, PID, generation, &event);
}

static uint64_t unseen_until(uint32_t generation)
{
	return instances_find(&is, PID, generation)->unseen_until_ns;
}

static bool is_first(void *ctx, pid_t pid, uint32_t generation)
{
	return generation == 0;
}

/* A life is told from the next one that has the same pid, whatever of it is forgotten. */
TEST_WITH(the_newest_of_a_life_is_not_replaced, set_up, tear_down)
{
	assert_false(instances_is_replaced(&is, PID, 0));
	assert_non_null(instances_get(&is, PID, 0));
	assert_false(instances_is_replaced(&is, PID, 0));
	begin(1, HT_EVENT_EXEC, 1);
	begin(3, HT_EVENT_EXEC, 2); /* the event of 2 was lost */
	assert_true(instances_is_replaced(&is, PID, 0));
	assert_true(instances_is_replaced(&is, PID, 1));
	assert_true(instances_is_replaced(&is, PID, 2));
	assert_false(instances_is_replaced(&is, PID, 3));
	begin(HT_GENERATION_STEP, HT_EVENT_FORK, 3);
	assert_false(instances_is_replaced(&is, PID, 3));
	assert_false(instances_is_replaced(&is, PID, HT_GENERATION_STEP));
	assert_false(instances_is_replaced(&is, PID + 1, 0));
	instances_note_over(&is, is_first, NULL);
	assert_int_equal(instances_forget_noted(&is), 0);
	assert_null(instances_find(&is, PID, 0));
	assert_true(instances_is_replaced(&is, PID, 1));
}

TEST_WITH(late_probes_leave_time_unseen, set_up, tear_down)
{
	uint64_t now = now_ns();

	instances_get(&is, PID, 0);
	instances_note_late(&is, PID, 0, false);
	assert_int_equal(unseen_until(0), 0); /* it ran before, and that is known */
	begin(1, HT_EVENT_EXEC, now);
	instances_note_late(&is, PID, 1, false);
	assert_true(unseen_until(1) >= now);
	begin(2, HT_EVENT_FORK, now);
	instances_note_late(&is, PID, 2, false);
	assert_int_equal(unseen_until(2), 0);
}

/* When it was read, not how late that was, says what of: a busy machine reads a program for the first time after seconds. */
TEST_WITH(what_a_dlopen_maps_is_not_late, set_up, tear_down)
{
	uint64_t now = now_ns();

	begin(1, HT_EVENT_EXEC, now);
	instances_note_read(&is, PID, 1, now + NS_PER_S / 2,
			    true); /* it may not have its libraries yet */
	instances_note_read(&is, PID, 1, now + 2 * NS_PER_S,
			    false); /* one of its files is not read */
	instances_note_late(&is, PID, 1, false);
	assert_true(unseen_until(1) >= now);
	begin(2, HT_EVENT_EXEC, now);
	instances_note_read(&is, PID, 2, now + 2 * NS_PER_S, true);
	instances_note_late(&is, PID, 2, false);
	assert_int_equal(unseen_until(2), 0);
	instances_note_late(&is, PID, 2, true); /* it was held, but went on by itself */
	assert_true(unseen_until(2) >= now);
}

/* A process may be read before the event of its exec is. */
TEST_WITH(late_probes_before_the_exec_is_heard_of, set_up, tear_down)
{
	struct ht_event exec = { .kind = HT_EVENT_EXEC, .time_ns = now_ns() };

	for (uint32_t held = 0; held < 2; held++) {
		instances_get(&is, PID, 1 + held);
		instances_note_late(&is, PID, 1 + held, false);
		instances_note_read(&is, PID, 1 + held, now_ns(), true);
		assert_int_equal(unseen_until(1 + held), 0);
		exec.other = held;
		instances_note_begin(&is, PID, 1 + held, &exec);
		assert_int_equal(unseen_until(1 + held) > 0, !held);
	}
}

TEST_WITH(what_comes_while_it_is_loaded_is_in_time, set_up, tear_down)
{
	uint64_t now = now_ns();

	begin(1, HT_EVENT_EXEC, now);
	instances_note_loader(&is, PID, 1);
	for (int i = 0; i < 2; i++) { /* at the start, and of a dlopen() */
		instances_note_late(&is, PID, 1, false);
		assert_true(unseen_until(1) > 0); /* should it never be held again */
		instances_note_loaded(&is, PID, 1, true);
		assert_int_equal(unseen_until(1), 0);
	}
	instances_note_late(&is, PID, 1, false);
	instances_note_loaded(&is, PID, 1, false); /* it was held for too short a time */
	instances_note_late(&is, PID, 1, false);
	instances_note_loaded(&is, PID, 1, true); /* what was missed stays so */
	assert_true(unseen_until(1) > 0);
	begin(2, HT_EVENT_EXEC, now); /* static */
	instances_note_late(&is, PID, 2, false);
	instances_note_loaded(&is, PID, 2, true);
	assert_true(unseen_until(2) > 0);
}

TEST_WITH(who_ends_unread_was_unseen, set_up, tear_down)
{
	begin(1, HT_EVENT_EXEC, 5);
	instances_note_end(&is, PID, 1, 9);
	assert_int_equal(unseen_until(1), 9);
	begin(2, HT_EVENT_EXEC, 9);
	instances_note_read(&is, PID, 2, 10, true);
	instances_note_end(&is, PID, 2, 11);
	assert_int_equal(unseen_until(2), 0);
	begin(3, HT_EVENT_FORK, 12);
	instances_note_end(&is, PID, 3, 13);
	assert_int_equal(unseen_until(3), 0);
	instances_note_end(&is, PID, 99, 13); /* not known */
}

RUN_TESTS()
