/* SPDX-License-Identifier: MIT */
/*
 * test_tap_draw.c - the stub's slow path, run here instead of in another process. Threads, processes and children must
 * not draw what others draw, or what their samples are off by adds up instead of cancelling out; and threads that have
 * the same slot must each have their samples.
 */
#include "unit.h"

#include <pthread.h>

#define TAP_HEADER_BYTES sizeof(struct tap_header) /* the assembler wants it as a number */
#define TAP_SLOTS 8 /* so that threads have the same ones */
#define TAP_INSIDE_LINES 2
#include "tap/stub/slow.c"

#define RATE_BYTES 65536
#define DRAW_CNT 2000
#define THREAD_CNT 8

static struct tap_data tap_memory;
static struct tap_control tap_control;
const struct tap_header tap_header = {
	.control_addr = (uint64_t)&tap_control,
	.data_addr = (uint64_t)&tap_memory,
	.site = { { .op = HT_OP_ALLOC,
		    .count_arg = HT_ARG_NONE,
		    .ret = HT_RET_VALUE,
		    .flags = TAP_SITE_COUNTS },
		  { .op = HT_OP_ALLOC, .count_arg = 1, .ret = HT_RET_VALUE } },
};

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

TEST(test_threads)
{
	static uint64_t drawn[THREAD_CNT][DRAW_CNT];

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

TEST(test_processes)
{
	static uint64_t one[DRAW_CNT], other[DRAW_CNT];

	begin(RATE_BYTES, 1);
	draw_all(0, one);
	begin(RATE_BYTES, 2);
	draw_all(0, other);
	assert_apart(one, other);
}

/* Its data is all zero, until it gets a rate of its own. */
TEST(test_child)
{
	static uint64_t one[DRAW_CNT], other[DRAW_CNT];

	for (uint64_t seed = 1; seed <= 2; seed++) {
		begin(0, 0);
		assert_int_equal(next_left(&tap_memory.slot[0], 0), LOOK_BYTES);
		tap_control.seed = seed;
		draw_all(0, seed == 1 ? one : other);
	}
	assert_apart(one, other);
}

/* What the way in does (tap_code.c), and whether the call then gets to the slow path. */
static void way_in(struct tap_slot *s, uint64_t size)
{
	s->left_bytes -= size;
}

static bool gets_slow(const struct tap_slot *s, uint64_t size)
{
	return s->left_bytes < size || (int64_t)(s->left_bytes - size) < 0;
}

/* The sites of tap_header: a malloc, and a calloc, which is not counted in the way in. */
enum { MALLOC, CALLOC };

/* A frame of the stub; the higher, the further out. */
struct stack {
	struct tap_call call[3];
};

static void enter_call(struct tap_call *c, uint64_t size, int site)
{
	*c = (struct tap_call){ .arg = { size, 1 }, .idx = (uint64_t)site };
	if (site == MALLOC)
		way_in(slot_of(data(), entry_sp(c)), size);
	tap_before(c);
}

static enum after leave_call(struct tap_call *c, uint64_t ptr)
{
	c->result = ptr;
	return tap_after(c);
}

/* A call in the frame c. Returns whether its block is kept; it is freed. */
static bool is_kept_in(struct tap_call *c, uint64_t size, uint64_t ptr, int site)
{
	if (site == MALLOC && !gets_slow(slot_of(data(), entry_sp(c)), size)) {
		way_in(slot_of(data(), entry_sp(c)), size);
		return false;
	}
	enter_call(c, size, site);
	if (leave_call(c, ptr) != AFTER_TELL)
		return false;
	assert_int_equal(c->told_ptr, ptr);
	assert_int_equal(c->told_bytes, size);
	assert_int_equal(c->told_weight, draw_weight(size, tap_control.rate_bytes));
	assert_int_equal(tap_freed(ptr), ptr);
	return true;
}

static bool is_kept(uint64_t size, uint64_t ptr)
{
	struct tap_call c;

	return is_kept_in(&c, size, ptr, MALLOC);
}

static size_t inside_cnt(const struct tap_data *d)
{
	size_t cnt = 0;

	for (size_t i = 0; i < TAP_INSIDE_LINES; i++)
		for (size_t k = 0; k < TAP_INSIDE_LINE; k++)
			cnt += d->inside[i][k].tp != 0;
	return cnt;
}

/* cnt of DRAW_CNT are kept with p, within five standard deviations. */
static void assert_share(int cnt, double p)
{
	if (fabs(cnt - p * DRAW_CNT) > 5 * sqrt(DRAW_CNT * p * (1 - p)))
		fail_msg("%d of %d, must be %.0f", cnt, DRAW_CNT, p * DRAW_CNT);
}

/* A share of p is kept, whichever way in, from the first one on, and whatever the counter was when it was not drawn. */
TEST(test_share)
{
	const uint64_t size = 10000;
	const double p = 1 - exp(-(double)size / RATE_BYTES);
	int cnt[4] = { 0 };

	for (int i = 0; i < DRAW_CNT; i++) {
		struct tap_call c;

		begin(RATE_BYTES, (uint64_t)i + 1);
		cnt[0] += is_kept(size, 0x1000);
		cnt[1] += is_kept(size, 0x1000);
		cnt[2] += is_kept_in(&c, size, 0x1000, CALLOC);
		/* two threads have taken from it, and both are below 0 */
		slot_of(data(), entry_sp(&c))->left_bytes = (uint64_t)-5000;
		cnt[3] += is_kept_in(&c, size, 0x1000, MALLOC);
	}
	for (int i = 0; i < 4; i++)
		assert_share(cnt[i], p);
}

/* With rate 1 every block; blocks that are too large for memory change nothing. */
TEST(test_all)
{
	struct tap_call c;

	begin(1, 1);
	for (int i = 0; i < DRAW_CNT; i++)
		assert_true(is_kept(10, 0x1000));
	begin(RATE_BYTES, 1);
	(void)is_kept_in(&c, 10, 0x1000, MALLOC);
	for (int i = 0; i < 9; i++) {
		struct tap_slot *s = slot_of(data(), entry_sp(&c));
		uint64_t left = s->left_bytes;

		assert_true(gets_slow(s, 1ULL << (62 + i % 2)));
		enter_call(&c, 1ULL << (62 + i % 2), MALLOC);
		assert_int_equal(leave_call(&c, 0), AFTER_NOTHING);
		assert_int_equal(s->left_bytes, left);
	}
}

/* A call inside another one is a part of it, also if it has the bytes run out; then the counter goes on. */
TEST(test_nested)
{
	struct stack s;

	for (int outer = MALLOC; outer <= CALLOC; outer++) {
		begin(1, 1);
		enter_call(&s.call[2], 100, outer);
		assert_int_equal(inside_cnt(data()), 1);
		assert_false(is_kept_in(&s.call[1], 100, 0x1000, MALLOC));
		assert_false(is_kept_in(&s.call[1], 100, 0x1000, CALLOC));
		assert_int_equal(inside_cnt(data()), 1);
		assert_int_equal(leave_call(&s.call[2], 0x1000), AFTER_TELL);
		assert_int_equal(inside_cnt(data()), 0);
		assert_true(is_kept(100, 0x2000));
	}
}

/* The same with taps of three files: a library in front of malloc, and a second C library. */
TEST(test_peers)
{
	static struct tap_data peer[2];
	struct stack s;

	memset(peer, 0, sizeof(peer));
	/* The tap under test is the inner one. */
	begin(1, 1);
	tap_memory.peer_addr[0] = (uint64_t)&peer[0];
	tap_memory.peer_addr[1] = (uint64_t)&peer[1];
	for (int i = 0; i < 2; i++) {
		struct tap_inside *in = inside_line(&peer[i], thread_pointer());

		in[2] = (struct tap_inside){ thread_pointer(), entry_sp(&s.call[2]) };
		assert_false(is_kept_in(&s.call[1], 100, 0x1000, MALLOC));
		assert_false(is_kept_in(&s.call[0], 100, 0x1000, CALLOC));
		/* over: it never came back */
		in[2].sp = entry_sp(&s.call[0]);
		assert_true(is_kept_in(&s.call[1], 100, 0x1000, MALLOC));
		in[2].tp++; /* somebody else */
		in[2].sp = entry_sp(&s.call[2]);
		assert_true(is_kept_in(&s.call[1], 100, 0x1000, MALLOC));
	}
}

/* A thread that leaves its call by longjmp, an exception or its end: the next one at that place or above is its own. */
TEST(test_never_back)
{
	struct stack s;

	begin(1, 1);
	for (int next = 1; next <= 2; next++) {
		enter_call(&s.call[1], 100, MALLOC); /* and is never left */
		assert_true(is_kept_in(&s.call[next], 100, 0x1000, MALLOC));
		assert_int_equal(inside_cnt(data()), 0);
		assert_true(is_kept(100, 0x1000));
	}
}

/* A signal handler on another stack, above: its calls are its own, and nobody is listed in the end. */
TEST(test_handler)
{
	struct stack s;

	begin(1, 1);
	enter_call(&s.call[1], 100, MALLOC);
	assert_true(is_kept_in(&s.call[2], 50, 0x2000, MALLOC));
	assert_int_equal(leave_call(&s.call[1], 0x1000), AFTER_TELL);
	assert_int_equal(inside_cnt(data()), 0);
	/* the handler is still in when what it interrupted ends, as with fibres */
	enter_call(&s.call[1], 100, MALLOC);
	enter_call(&s.call[2], 100, MALLOC);
	assert_int_equal(leave_call(&s.call[1], 0x1000), AFTER_TELL);
	assert_int_equal(leave_call(&s.call[2], 0x2000), AFTER_TELL);
	assert_int_equal(inside_cnt(data()), 0);
}

/* No place for one more: what would be told is counted as lost. */
TEST(test_no_room)
{
	struct tap_inside *in = inside_line(data(), thread_pointer());

	begin(1, 1);
	for (uint64_t i = 0; i < TAP_INSIDE_LINE; i++)
		in[i] = (struct tap_inside){ 0x1000 + i, 0x1000 };
	assert_false(is_kept(100, 0x1000));
	assert_int_equal(tap_control.dropped_cnt, 1);
}

/* operator new: what is called instead. */
TEST(test_plain)
{
	static const struct {
		uint8_t flags;
		uint64_t arg[2], real[2];
	} cases[] = {
		{ 0, { 5, 6 }, { 5, 6 } },
		{ 0, { 0, 6 }, { 0, 6 } },
		{ TAP_SITE_THROWS, { 5, 6 }, { 5, 6 } },
		{ TAP_SITE_THROWS, { 0, 6 }, { 1, 6 } },
		{ TAP_SITE_THROWS | TAP_SITE_SWAPS, { 5, 64 }, { 64, 5 } },
		{ TAP_SITE_THROWS | TAP_SITE_SWAPS, { 0, 64 }, { 64, 1 } },
	};

	each_case(one, cases) {
		const struct tap_site site = { .count_arg = HT_ARG_NONE, .flags = one->flags };
		struct tap_call c = { .site = &site, .arg = { one->arg[0], one->arg[1] } };

		set_real_call(&c);
		assert_int_equal(c.real_arg[0], one->real[0]);
		assert_int_equal(c.real_arg[1], one->real[1]);
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

/* Of 32 threads on 8 slots every block is kept, or counted as lost where more than four are in one line; or not the one
 * whose bytes got lost when two took from a slot at once. */
TEST(test_crowd)
{
	pthread_t thread[CROWD];
	uint64_t sum = 0;
	void *cnt;

	begin(1, 1);
	for (uintptr_t i = 0; i < CROWD; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, crowd, (void *)i), 0);
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(pthread_join(thread[i], &cnt), 0);
		sum += (uintptr_t)cnt;
	}
	assert_in_range(sum + tap_control.dropped_cnt, CROWD * CALLS * 9 / 10, CROWD * CALLS);
	assert_int_equal(inside_cnt(data()), 0);
}

/* Blocks that probes have sampled before the tap came are freed like its own, each once. */
TEST(test_seeds)
{
	static const uint8_t no_filter[TAP_FILTER_CNT];
	static struct tap_seeds seeds;
	static uint64_t ptr[TAP_SET_SLOTS + 1];
	uint64_t random = 7, cnt = 0;

	begin(RATE_BYTES, 1);
	do
		ptr[cnt] = draw_random(&random) >> 17 << 4 | 0x100000000000;
	while (tap_seeds_add(&seeds, ptr[cnt]) && ++cnt < TAP_SET_SLOTS);
	assert_in_range(cnt, TAP_SET_SLOTS / 4, TAP_SET_SLOTS);
	memcpy(tap_memory.filter, seeds.filter, sizeof(seeds.filter));
	memcpy(tap_memory.set, seeds.set, sizeof(seeds.set));
	assert_int_equal(tap_freed(ptr[cnt]), 0); /* the one without room */
	for (uint64_t i = 0; i < cnt; i++)
		assert_int_equal(tap_freed(ptr[i]), ptr[i]);
	for (uint64_t i = 0; i < cnt; i++)
		assert_int_equal(tap_freed(ptr[i]), 0);
	assert_memory_equal(tap_memory.filter, no_filter, sizeof(no_filter));
}

RUN_TESTS()
