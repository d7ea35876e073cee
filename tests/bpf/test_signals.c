/* SPDX-License-Identifier: MIT */
/*
 * test_signals.c - signal handlers that allocate while an allocation of their thread is under way.
 *
 * The calls are interrupted at known places: posix_memalign() by the page that it stores the
 * address in (after the allocation), realloc() by the page of the old block's header (before it).
 * Neither place holds a lock of the allocator.
 */
#include "frames.h"

#include <malloc.h>

#define NEST_CAP 8
#define ALT_BYTES 65536
#define PAGE_BYTES 4096

static void *(*volatile do_malloc)(size_t) = malloc;
static void *(*volatile do_realloc)(void *, size_t) = realloc;
static int (*volatile do_posix_memalign)(void **, size_t, size_t) = posix_memalign;
static void (*volatile do_free)(void *) = free;

static char *page[NEST_CAP]; /* not accessible: who touches it gets the signal */
static volatile unsigned int depth, deepest, jumps;
static sigjmp_buf escape;
static void *held[NEST_CAP];

#define CALL_BYTES(n) (5003 + 1000 * (n))
#define HANDLER_BYTES 211

PART(handler)
void on_fault(int sig)
{
	unsigned int n = depth++;

	(void)sig;
	if (n < deepest)
		do_posix_memalign((void **)page[depth], 64, CALL_BYTES(depth));
	else
		held[0] = do_malloc(HANDLER_BYTES);
	if (jumps)
		siglongjmp(escape, 1);
	mprotect(page[n], PAGE_BYTES, PROT_READ | PROT_WRITE);
}

static void close_pages(void)
{
	depth = 0;
	for (int i = 0; i < NEST_CAP; i++) {
		if (!page[i])
			page[i] = mmap(NULL, PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				       0);
		mprotect(page[i], PAGE_BYTES, PROT_NONE);
	}
}

/* out[0]: on an alternate stack? */
static void take_signal(volatile uint64_t *out)
{
	static char alt[ALT_BYTES];
	const stack_t stack = { .ss_sp = alt, .ss_size = sizeof(alt) };
	const stack_t none = { .ss_flags = SS_DISABLE };
	struct sigaction act = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };

	if (out[0])
		act.sa_flags |= SA_ONSTACK;
	sigaltstack(out[0] ? &stack : &none, NULL);
	sigaction(SIGSEGV, &act, NULL);
	close_pages();
}

PART(step)
void step_memalign(volatile uint64_t *out)
{
	take_signal(out);
	deepest = out[1];
	out[2] = do_posix_memalign((void **)page[0], 64, CALL_BYTES(0));
	held[1] = *(void **)page[0];
}

PART(step)
void step_realloc(volatile uint64_t *out)
{
	char *mapped = page[0];
	void *block = do_malloc(40 << 20); /* above every threshold: a mapping of its own */

	take_signal(out);
	deepest = 0;
	page[0] = (char *)((uintptr_t)block & -PAGE_BYTES);
	mprotect(page[0], PAGE_BYTES, PROT_NONE);
	block = do_realloc(block, 48 << 20);
	out[2] = block == NULL;
	held[1] = block;
	page[0] = mapped;
}

static void step_free(volatile uint64_t *out)
{
	do_free(held[0]);
	do_free(held[1]);
}

static void step_jump(volatile uint64_t *out)
{
	take_signal(out);
	deepest = 0;
	for (jumps = 1; jumps <= 10; jumps++) {
		close_pages();
		if (!sigsetjmp(escape, 1))
			do_posix_memalign((void **)page[0], 64, CALL_BYTES(0));
		do_free(held[0]);
		held[0] = do_malloc(307);
		do_free(held[0]);
	}
	out[2] = jumps - 1;
	jumps = 0;
	held[0] = do_malloc(401);
	held[1] = do_malloc(409);
}

/* The handler's block: from its leaf through the interrupted call to the thread's start. */
static void check_handler(struct rig *rig)
{
	struct ht_stack stack = frames_of(rig, HANDLER_BYTES);
	int handler, step;

	assert_int_equal(stack.end, HT_END_COMPLETE);
	assert_int_equal(frames_in(rig, &stack, PART_RANGE(handler), &handler), 1);
	assert_int_equal(frames_in(rig, &stack, PART_RANGE(step), &step), 1);
	assert_int_equal(handler, 1); /* malloc's caller */
	assert_true(step >= handler + 3); /* the signal's return and the interrupted call between */
}

static void check_interrupted(struct rig *rig, rig_step fn, uint64_t bytes)
{
	struct rig_sum live;

	for (uint64_t on_alt = 0; on_alt < 2; on_alt++) {
		rig->out[0] = on_alt;
		rig->out[1] = 0;
		rig_do(rig, fn);
		assert_int_equal(rig->out[2], 0);
		live = rig_live(rig);
		assert_int_equal(live.cnt, 2);
		assert_int_equal(live.bytes, bytes + HANDLER_BYTES);
		check_handler(rig);
		rig_do(rig, step_free);
		assert_int_equal(rig_live(rig).cnt, 0);
	}
	assert_int_equal(rig_stat(rig, HT_STAT_PENDING_STALE), 0);
	assert_int_equal(rig_stat(rig, HT_STAT_PENDING_LOST), 0);
	assert_int_equal(rig_stat(rig, HT_STAT_MISSED_FREE), 0);
}

TEST(test_after)
{
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 1024);

	check_interrupted(rig, step_memalign, CALL_BYTES(0));
}

TEST(test_before)
{
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 1024);

	check_interrupted(rig, step_realloc, 48 << 20);
}

/* As many calls at once as are kept, and more: then the oldest are given up, and counted. */
TEST(test_nested)
{
	struct rig *rig;
	struct rig_sum live;
	uint64_t bytes = HANDLER_BYTES;

	rig = rig_open(rig_mode(state), 1, 4096, 1024);
	rig->out[0] = 0;
	rig->out[1] = HT_PENDING_CAP - 2;
	rig_do(rig, step_memalign);
	live = rig_live(rig);
	for (int i = 0; i < HT_PENDING_CAP - 1; i++)
		bytes += CALL_BYTES(i);
	assert_int_equal(live.cnt, HT_PENDING_CAP);
	assert_int_equal(live.bytes, bytes);
	assert_int_equal(rig_stat(rig, HT_STAT_PENDING_STALE), 0);
	unit_drop(rig);

	rig = rig_open(rig_mode(state), 1, 4096, 1024);
	rig->out[0] = 0;
	rig->out[1] = HT_PENDING_CAP + 1;
	rig_do(rig, step_memalign);
	live = rig_live(rig);
	bytes = HANDLER_BYTES;
	for (int i = 3; i < HT_PENDING_CAP + 2; i++)
		bytes += CALL_BYTES(i);
	assert_int_equal(live.cnt, HT_PENDING_CAP);
	assert_int_equal(live.bytes, bytes);
	assert_int_equal(rig_stat(rig, HT_STAT_PENDING_STALE), 3);
	assert_int_equal(rig_stat(rig, HT_STAT_SAMPLES), HT_PENDING_CAP + 3);
}

TEST(test_jump)
{
	struct rig *rig;
	struct rig_sum live;

	for (uint64_t on_alt = 0; on_alt < 2; on_alt++) {
		rig = rig_open(rig_mode(state), 1, 4096, 1024);
		rig->out[0] = on_alt;
		rig_do(rig, step_jump);
		assert_int_equal(rig->out[2], 10);
		live = rig_live(rig);
		assert_int_equal(live.cnt, 2);
		assert_int_equal(live.bytes, 401 + 409);
		assert_int_equal(rig_stat(rig, HT_STAT_SAMPLES), 10 * 3 + 2);
		assert_int_equal(rig_stat(rig, HT_STAT_FREES), 10 * 2);
		assert_int_equal(rig_stat(rig, HT_STAT_MISSED_FREE), 0);
		unit_drop(rig);
	}
}

RUN_RIG_TESTS()
