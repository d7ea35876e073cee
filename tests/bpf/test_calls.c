/* SPDX-License-Identifier: MIT */
/* test_calls.c - single calls of the allocator, in every attach mode that this kernel has. */
#include "rig.h"

#include <malloc.h>

/* Hidden from the compiler, which knows malloc and free and would leave calls out. */
static void *(*volatile do_malloc)(size_t) = malloc;
static void *(*volatile do_calloc)(size_t, size_t) = calloc;
static void *(*volatile do_realloc)(void *, size_t) = realloc;
static void *(*volatile do_reallocarray)(void *, size_t, size_t) = reallocarray;
static void *(*volatile do_memalign)(size_t, size_t) = memalign;
static int (*volatile do_posix_memalign)(void **, size_t, size_t) = posix_memalign;
static void (*volatile do_free)(void *) = free;

static void *held[8];
static jmp_buf escape;

static void step_malloc(volatile uint64_t *out)
{
	held[0] = do_malloc(1009);
	held[1] = do_calloc(7, 13);
	out[0] = (uintptr_t)held[0];
}

static void step_free(volatile uint64_t *out)
{
	do_free(held[0]);
	do_free(held[1]);
}

static void step_realloc_grow(volatile uint64_t *out)
{
	held[0] = do_realloc(held[0], 50021);
	out[0] = (uintptr_t)held[0];
}

static void step_realloc_fail(volatile uint64_t *out)
{
	out[0] = do_realloc(held[0], PTRDIFF_MAX) != NULL;
}

static void step_realloc_zero(volatile uint64_t *out)
{
	out[0] = do_realloc(held[0], 0) != NULL;
}

static void step_realloc_null(volatile uint64_t *out)
{
	held[0] = do_realloc(NULL, 211);
	held[1] = do_reallocarray(NULL, 5, 61);
}

static void step_aligned(volatile uint64_t *out)
{
	held[0] = do_memalign(8, 401); /* no more than malloc's own: malloc does it */
	held[1] = do_memalign(4096, 409);
	do_posix_memalign(&held[2], 64, 419);
}

static void step_failures(volatile uint64_t *out)
{
	void *p = NULL;

	out[0] = do_calloc(SIZE_MAX / 2, 3) != NULL;
	out[1] = do_posix_memalign(&p, 3, 64) == 0;
	out[2] = do_posix_memalign(&p, 64, PTRDIFF_MAX) == 0;
	out[3] = do_malloc(PTRDIFF_MAX) != NULL;
}

static void step_many(volatile uint64_t *out)
{
	for (int i = 0; i < 100; i++)
		do_malloc(64);
}

static void check_live(struct rig *rig, uint64_t cnt, uint64_t bytes)
{
	struct rig_sum sum = rig_live(rig);

	assert_int_equal(sum.cnt, cnt);
	assert_int_equal(sum.bytes, bytes);
}

TEST(test_exact)
{
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 1024);

	rig_do(rig, step_malloc);
	check_live(rig, 2, 1009 + 7 * 13);
	rig_do(rig, step_free);
	check_live(rig, 0, 0);
	assert_int_equal(rig_stat(rig, HT_STAT_SAMPLES), 2);
	assert_int_equal(rig_stat(rig, HT_STAT_FREES), 2);
}

TEST(test_resized)
{
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 1024);

	rig_do(rig, step_malloc);
	rig_do(rig, step_realloc_grow);
	check_live(rig, 2, 50021 + 7 * 13);
	rig_do(rig, step_realloc_fail);
	assert_int_equal(rig->out[0], 0);
	check_live(rig, 2, 50021 + 7 * 13); /* the old block is back */
	assert_int_equal(rig_stat(rig, HT_STAT_FAILED_CALLS), 1);
	rig_do(rig, step_realloc_zero);
	check_live(rig, 1, 7 * 13);
	rig_do(rig, step_realloc_null);
	check_live(rig, 3, 7 * 13 + 211 + 5 * 61);
}

TEST(test_aligned)
{
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 1024);

	rig_do(rig, step_aligned);
	check_live(rig, 3, 401 + 409 + 419);
}

TEST(test_failures)
{
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 1024);

	rig_do(rig, step_failures);
	for (int i = 0; i < 4; i++)
		assert_int_equal(rig->out[i], 0);
	check_live(rig, 0, 0);
}

TEST(test_live_full)
{
	struct rig_sum sum;
	uint64_t full;
	struct rig *rig = rig_open(rig_mode(state), 1, 16, 1024);

	rig_do(rig, step_many);
	sum = rig_live(rig);
	full = rig_stat(rig, HT_STAT_LIVE_FULL);
	assert_true(full > 0);
	assert_int_equal(sum.cnt + full, 100);
	assert_int_equal(rig_stat(rig, HT_STAT_LIVE_FULL_BYTES), full * 64);
	assert_int_equal(rig_stat(rig, HT_STAT_SAMPLES), 100);
}

/* A block whose free is not seen, and whose address comes again. */
/* Sizes whose blocks come back at once: calloc() does not take what the thread has just freed. */
static void step_malloc_two(volatile uint64_t *out)
{
	held[0] = do_malloc(1009);
	held[1] = do_malloc(811);
}

TEST(test_missed_free)
{
	const struct ht_target off = { .flags = HT_TARGET_OFF };
	struct ht_target on;
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 1024);

	rig_do(rig, step_malloc_two);
	assert_int_equal(engine_get_target(rig->engine, rig->pid, &on), 0);
	assert_int_equal(engine_put_target(rig->engine, rig->pid, &off), 0);
	rig_do(rig, step_free);
	check_live(rig, 2, 1009 + 811);
	assert_int_equal(engine_put_target(rig->engine, rig->pid, &on), 0);
	rig_do(rig, step_malloc_two);
	check_live(rig, 2, 1009 + 811);
	assert_int_equal(rig_stat(rig, HT_STAT_MISSED_FREE), 2);
}

static void on_fault(int sig)
{
	siglongjmp(escape, 1);
}

/*
 * Leave calls by a jump: posix_memalign faults when it stores the address, which is after the
 * allocation, realloc when it looks at the old block, which is before it.
 */
static void step_escape(volatile uint64_t *out)
{
	struct sigaction act = { .sa_handler = on_fault }, before;
	volatile uint64_t jumps = 0;

	sigaction(SIGSEGV, &act, &before);
	if (sigsetjmp(escape, 1))
		jumps++;
	if (jumps < 6) {
		if (jumps % 2)
			do_realloc((void *)4096, 100);
		else
			do_posix_memalign((void **)8, 64, 5003);
	}
	sigaction(SIGSEGV, &before, NULL);
	for (int i = 0; i < 20; i++)
		do_free(do_malloc(3001));
	step_malloc(out);
	out[1] = jumps;
}

TEST(test_escape)
{
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 1024);

	rig_do(rig, step_escape);
	assert_int_equal(rig->out[1], 6);
	check_live(rig, 2, 1009 + 7 * 13);
}

RUN_RIG_TESTS()
