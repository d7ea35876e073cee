/* SPDX-License-Identifier: MIT */
/*
 * test_tap_draw.c - the stub's own draws, run here instead of in another process: threads, processes and children must
 * not draw what others draw, or what their samples are off by adds up instead of cancelling out.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TAP_HEADER_BYTES sizeof(struct tap_header) /* the assembler wants it as a number */
#include "tap/stub/slow.c"

#define RATE_BYTES 65536
#define DRAW_CNT 2000
#define THREAD_CNT 8

static struct tap_data tap_memory;
const struct tap_header tap_header = { .data_addr = (uint64_t)&tap_memory };

static void begin(uint64_t rate_bytes, uint64_t seed)
{
	memset(&tap_memory, 0, sizeof(tap_memory));
	tap_memory.seed = seed;
	tap_memory.rate_bytes = rate_bytes;
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
		tap_memory.seed = seed;
		draw_all(0, seed == 1 ? one : other);
	}
	assert_apart(one, other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
