/* SPDX-License-Identifier: MIT */
/*
 * test_tap_draw.c - the stub's slow path, run here instead of in another process. Threads, processes and children must
 * not draw what others draw, or what their samples are off by adds up instead of cancelling out; and threads that have
 * the same slot must each have their samples.
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TAP_HEADER_BYTES sizeof(struct tap_header) /* the assembler wants it as a number */
#define TAP_SLOTS 8 /* so that threads have the same ones */
#include "tap/stub/slow.c"

#define RATE_BYTES 65536
#define DRAW_CNT 2000
#define THREAD_CNT 8

static struct tap_data tap_memory;
static struct tap_control tap_control;
const struct tap_header tap_header = { .control_addr = (uint64_t)&tap_control,
				       .data_addr = (uint64_t)&tap_memory };

static void begin(uint64_t rate_bytes, uint64_t seed)
{
	memset(&tap_memory, 0, sizeof(tap_memory));
	memset(&tap_control, 0, sizeof(tap_control));
	tap_memory.mark = TAP_MAGIC;
	tap_control.seed = seed;
	tap_control.rate_bytes = rate_bytes;
}

static void draw_all(unsigned int thread, uint64_t *ret)
{
	for (int i = 0; i < DRAW_CNT; i++)
		ret[i] = next_left(&tap_memory.slot[thread], RATE_BYTES);
}

static size_t common_cnt(const uint64_t *a, const uint64_t *b)
{
	size_t cnt = 0;

	for (int i = 0; i < DRAW_CNT; i++)
		for (int j = 0; j < DRAW_CNT; j++)
			cnt += a[i] == b[j];
	return cnt;
}

/* Of 4 million pairs of some 65 536 likely numbers some 20 are equal by chance. */
static void assert_apart(const uint64_t *a, const uint64_t *b)
{
	size_t cnt = common_cnt(a, b);

	if (cnt > DRAW_CNT / 10)
		fail_msg("%zu of %d draws are those of another one", cnt, DRAW_CNT);
}

static void test_threads(void **state)
{
	static uint64_t drawn[THREAD_CNT][DRAW_CNT];

	(void)state;
	begin(RATE_BYTES, 1);
	for (unsigned int i = 0; i < THREAD_CNT; i++) {
		double sum = 0;

		draw_all(i, drawn[i]);
		for (int k = 0; k < DRAW_CNT; k++)
			sum += (double)drawn[i][k];
		/* the mean, within five of its standard errors */
		assert_true(fabs(sum / DRAW_CNT / RATE_BYTES - 1) < 5 / sqrt(DRAW_CNT));
		for (unsigned int before = 0; before < i; before++)
			assert_apart(drawn[before], drawn[i]);
	}
}

static void test_processes(void **state)
{
	static uint64_t one[DRAW_CNT], other[DRAW_CNT];

	(void)state;
	begin(RATE_BYTES, 1);
	draw_all(0, one);
	begin(RATE_BYTES, 2);
	draw_all(0, other);
	assert_apart(one, other);
}

/* Its data is all zero, until it gets a rate of its own. */
static void test_child(void **state)
{
	static uint64_t one[DRAW_CNT], other[DRAW_CNT];

	(void)state;
	for (uint64_t seed = 1; seed <= 2; seed++) {
		begin(0, 0);
		assert_int_equal(next_left(&tap_memory.slot[0], 0), LOOK_BYTES);
		tap_control.seed = seed;
		draw_all(0, seed == 1 ? one : other);
	}
	assert_apart(one, other);
}

/* What the way in does (tap_code.c). Returns whether the call gets to the slow path. */
static bool way_in(struct tap_slot *s, uint64_t size)
{
	uint64_t before = s->left_bytes;

	s->left_bytes = before - size;
	return before < size || (int64_t)(before - size) < 0;
}

static const struct tap_site site = {
	.op = HT_OP_ALLOC, .count_arg = HT_ARG_NONE, .ret = HT_RET_VALUE, .flags = TAP_SITE_COUNTS
};

static struct tap_call called(uint64_t size)
{
	return (struct tap_call){ .arg = { size }, .site = &site };
}

/* A call that is not a part of another one. Returns whether its block is kept; it is freed. */
static bool is_kept(uint64_t size, uint64_t ptr)
{
	struct tap_slot *s = slot_of(&tap_memory, thread_pointer());
	struct tap_call c = called(size);

	if (!way_in(s, size))
		return false;
	tap_before(&c);
	c.result = ptr;
	if (tap_after(&c) != AFTER_TELL)
		return false;
	assert_int_equal(c.told_ptr, ptr);
	assert_int_equal(c.told_bytes, size);
	assert_int_equal(c.told_weight, draw_weight(size, tap_control.rate_bytes));
	assert_int_equal(tap_freed(ptr), ptr);
	return true;
}

/* While another thread has the slot, for as long as it takes: exact stays exact, and a share of p is kept. */
static void test_guest(void **state)
{
	const uint64_t size = 10000, other = 0x7f0000001000;
	const double p = 1 - exp(-(double)size / RATE_BYTES);
	struct tap_slot *s = slot_of(&tap_memory, thread_pointer());
	int cnt = 0;

	(void)state;
	begin(1, 1);
	s->owner = other;
	s->left_bytes = UINT64_MAX;
	for (int i = 0; i < DRAW_CNT; i++)
		assert_true(is_kept(size, 0x1000));
	begin(RATE_BYTES, 1);
	s->owner = other;
	s->left_bytes = UINT64_MAX;
	for (int i = 0; i < DRAW_CNT; i++)
		cnt += is_kept(size, 0x1000);
	assert_true(fabs(cnt - p * DRAW_CNT) < 5 * sqrt(DRAW_CNT * p * (1 - p)));
	assert_int_equal(s->owner, other);
	for (int i = 0; i < TAP_GUESTS_CAP; i++)
		assert_int_equal(s->guest[i], 0);
	/* sizes of which three would turn the counter round */
	for (int i = 0; i < 9; i++) {
		struct tap_call c = called(1ULL << 62);

		assert_true(way_in(s, 1ULL << 62));
		tap_before(&c);
		assert_int_equal(tap_after(&c), AFTER_NOTHING);
	}
	/* more than there is room for, and that is counted */
	begin(1, 1);
	s->owner = other;
	s->left_bytes = UINT64_MAX;
	for (uint64_t i = 0; i < TAP_GUESTS_CAP; i++)
		s->guest[i] = other + 1 + i;
	assert_false(is_kept(size, 0x1000));
	assert_int_equal(tap_control.dropped_cnt, 1);
}

/* A call inside another one is a part of it, whoever has the slot. */
static void test_nested(void **state)
{
	struct tap_slot *s = slot_of(&tap_memory, thread_pointer());

	(void)state;
	for (uint64_t owner = 0; owner <= 0x1000; owner += 0x1000) {
		struct tap_call outer = called(100), inner = called(100);

		begin(1, 1);
		s->owner = owner;
		s->left_bytes = owner ? UINT64_MAX : 0;
		assert_true(way_in(s, 100));
		tap_before(&outer);
		assert_true(way_in(s, 100));
		tap_before(&inner);
		inner.result = 0x1000;
		assert_int_equal(tap_after(&inner), AFTER_NOTHING);
		outer.result = 0x1000;
		assert_int_equal(tap_after(&outer), AFTER_TELL);
		assert_int_equal(s->owner, owner);
		assert_true(is_kept(100, 0x2000));
	}
}

#define CROWD 32
#define CALLS 3000

static void *crowd(void *nr)
{
	uintptr_t cnt = 0;

	for (uint64_t i = 0; i < CALLS; i++)
		cnt += is_kept(1 + i % 1000, 0x10000 + (uint64_t)(uintptr_t)nr * 0x1000);
	return (void *)cnt;
}

/* Of 32 threads on 8 slots every block is kept, or counted as lost where more than five are on one. */
static void test_crowd(void **state)
{
	pthread_t thread[CROWD];
	uint64_t sum = 0;
	void *cnt;

	(void)state;
	begin(1, 1);
	for (uintptr_t i = 0; i < CROWD; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, crowd, (void *)i), 0);
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(pthread_join(thread[i], &cnt), 0);
		sum += (uintptr_t)cnt;
	}
	assert_int_equal(sum + tap_control.dropped_cnt, CROWD * CALLS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads), cmocka_unit_test(test_processes),
		cmocka_unit_test(test_child),	cmocka_unit_test(test_guest),
		cmocka_unit_test(test_nested),	cmocka_unit_test(test_crowd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
