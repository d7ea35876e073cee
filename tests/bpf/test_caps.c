/* SPDX-License-Identifier: MIT */
/*
 * test_caps.c - maps that are full: what is in use stays exact, what is missing is counted, and
 * nothing else is lost.
 */
#include "heaptap/sum.h"
#include "rig.h"

#define STACK_CAP 16
#define TOTAL_CAP (4 * STACK_CAP) /* engine.c: four contexts a stack */
#define DEEPEST 100

static void *(*volatile do_malloc)(size_t) = malloc;
static void (*volatile do_free)(void *) = free;

static void *held[DEEPEST + 1];

static void alloc_all(size_t bytes)
{
	for (int depth = 0; depth < DEEPEST; depth++)
		held[depth] = rig_alloc_below(depth, bytes);
}

static void step_many_stacks(volatile uint64_t *out)
{
	alloc_all(101);
}

static void step_free_all(volatile uint64_t *out)
{
	for (int i = 0; i < DEEPEST; i++)
		do_free(held[i]);
}

struct stack_sum {
	struct engine *engine;
	uint64_t without_cnt, with_cnt;
};

static int add_stack(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct stack_sum *sum = ctx;
	struct ht_stack stack;

	if (!v->stack_id) {
		sum->without_cnt++;
		return 0;
	}
	sum->with_cnt++;
	assert_int_equal(engine_get_stack(sum->engine, v->stack_id, &stack), 0);
	assert_int_equal(stack.end, HT_END_COMPLETE);
	return 0;
}

/* The first stacks are kept, also when they come again; blocks of the others have none. */
TEST(test_stacks)
{
	struct rig_sum live;
	struct stack_sum sum = { 0 };
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, STACK_CAP);

	sum.engine = rig->engine;
	for (uint64_t round = 1; round <= 2; round++) {
		rig_do(rig, step_many_stacks);
		live = rig_live(rig);
		assert_int_equal(live.cnt, DEEPEST);
		assert_int_equal(live.bytes, DEEPEST * 101);
		sum.with_cnt = sum.without_cnt = 0;
		assert_int_equal(engine_each_live(rig->engine, add_stack, &sum), 0);
		assert_int_equal(sum.with_cnt, STACK_CAP);
		assert_int_equal(sum.without_cnt, DEEPEST - STACK_CAP);
		assert_int_equal(rig_stat(rig, HT_STAT_STACKS_FULL), round * (DEEPEST - STACK_CAP));
		rig_do(rig, step_free_all);
		assert_int_equal(rig_live(rig).cnt, 0);
	}
	assert_int_equal(rig_stat(rig, HT_STAT_SAMPLES), 2 * DEEPEST);
	assert_int_equal(rig_stat(rig, HT_STAT_FREES), 2 * DEEPEST);
	assert_int_equal(rig_stat(rig, HT_STAT_END_COMPLETE), 2 * DEEPEST);
}

static void name_thread(unsigned int n)
{
	char name[HT_COMM_BYTES];

	snprintf(name, sizeof(name), "name-%u", n);
	prctl(PR_SET_NAME, name);
}

/* One stack, under a hundred names of the thread. */
static void step_many_names(volatile uint64_t *out)
{
	for (unsigned int i = 0; i < DEEPEST; i++) {
		name_thread(i);
		held[i] = do_malloc(101);
	}
}

struct total_sum {
	uint64_t cnt;
	struct ht_total total;
};

static int add_total(void *ctx, const struct ht_total_key *k, const struct ht_total *v)
{
	struct total_sum *sum = ctx;

	sum->cnt++;
	sum->total.alloc_samples += v->alloc_samples;
	ht_sum_merge(&sum->total.alloc_bytes_8, &v->alloc_bytes_8);
	sum->total.free_samples += v->free_samples;
	ht_sum_merge(&sum->total.free_bytes_8, &v->free_bytes_8);
	return 0;
}

static struct total_sum totals(struct rig *rig)
{
	struct total_sum sum = { 0 };

	assert_int_equal(engine_each_total(rig->engine, add_total, &sum), 0);
	return sum;
}

TEST(test_totals)
{
	const uint64_t missing = DEEPEST - TOTAL_CAP;
	struct total_sum sum;
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, STACK_CAP);

	rig_do(rig, step_many_names);
	assert_int_equal(rig_live(rig).cnt, DEEPEST);
	assert_int_equal(rig_live(rig).bytes, DEEPEST * 101);
	sum = totals(rig);
	assert_int_equal(sum.cnt, TOTAL_CAP);
	assert_int_equal(sum.total.alloc_samples, TOTAL_CAP);
	assert_int_equal(ht_sum_value(&sum.total.alloc_bytes_8, 8), TOTAL_CAP * 101);
	assert_int_equal(rig_stat(rig, HT_STAT_TOTALS_FULL), missing);
	assert_int_equal(rig_stat(rig, HT_STAT_CONTEXTS_FULL), 0);

	/* A free that finds no sum is one more sample that is missing in it. */
	rig_do(rig, step_free_all);
	assert_int_equal(rig_live(rig).cnt, 0);
	sum = totals(rig);
	assert_int_equal(sum.total.free_samples, TOTAL_CAP);
	assert_int_equal(ht_sum_value(&sum.total.free_bytes_8, 8), TOTAL_CAP * 101);
	assert_int_equal(rig_stat(rig, HT_STAT_TOTALS_FULL), 2 * missing);
}

#define NAME_CNT (HT_CONTEXTS_CAP + 5000)

/* One call under each of the names of one image; out[0]: the first. */
static void step_use_names(volatile uint64_t *out)
{
	for (unsigned int i = 0; i < HT_THREAD_NAMES_CAP && out[0] < NAME_CNT; i++) {
		name_thread(out[0]++);
		do_free(do_malloc(101));
	}
}

static void step_one_more(volatile uint64_t *out)
{
	name_thread(out[0]);
	held[0] = do_malloc(101);
	name_thread(0);
	held[1] = do_malloc(103);
}

/* As if that many images had come after the one it is, by exec. */
static void be_image(struct rig *rig, int after)
{
	struct ht_target t;

	assert_int_equal(engine_get_target(rig->engine, rig->pid, &t), 0);
	t.generation += after;
	t.name_cnt = 0;
	assert_int_equal(engine_put_target(rig->engine, rig->pid, &t), 0);
}

static int count_context(void *ctx, const struct ht_context *k, const struct ht_context_value *v)
{
	uint64_t *cnt = ctx;

	assert_true(v->id > 0);
	++*cnt;
	return 0;
}

static int check_context(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	if (v->size_bytes == 101)
		assert_int_equal(v->context_id, 0);
	else
		assert_int_not_equal(v->context_id, 0);
	return 0;
}

TEST(test_contexts)
{
	uint64_t cnt = 0, full;
	int images;
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 65536);

	rig->out[0] = 0;
	for (images = 0; rig->out[0] < NAME_CNT; images++) {
		rig_do(rig, step_use_names);
		be_image(rig, 1);
	}
	assert_int_equal(engine_each_context(rig->engine, count_context, &cnt), 0);
	full = rig_stat(rig, HT_STAT_CONTEXTS_FULL);
	/* The kernel counts the entries of large maps per CPU: the bound is not sharp. */
	assert_true(full > 4000 && full < 6000);
	assert_int_equal(cnt + full, NAME_CNT);
	assert_int_equal(rig_live(rig).cnt, 0);
	assert_int_equal(rig_stat(rig, HT_STAT_SAMPLES), NAME_CNT);
	assert_int_equal(rig_stat(rig, HT_STAT_FREES), NAME_CNT);

	be_image(rig, -images);
	rig_do(rig, step_one_more);
	assert_int_equal(rig_live(rig).cnt, 2);
	assert_int_equal(engine_each_live(rig->engine, check_context, NULL), 0);
}

struct name_sum {
	uint64_t cnt, other_cnt;
};

static int sum_name(void *ctx, const struct ht_context *k, const struct ht_context_value *v)
{
	struct name_sum *sum = ctx;

	sum->cnt++;
	sum->other_cnt += !strcmp(k->comm, HT_THREAD_OTHER);
	return 0;
}

static void step_use_more_names(volatile uint64_t *out)
{
	for (unsigned int i = 0; i < 100; i++) {
		name_thread(out[0]++);
		held[i] = do_malloc(101);
	}
	name_thread(0);
	do_free(do_malloc(101));
}

/* One that names its threads after what they do leaves room for others. */
TEST(test_names)
{
	struct name_sum sum = { 0 };
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 65536);

	rig->out[0] = 0;
	rig_do(rig, step_use_names);
	assert_int_equal(engine_each_context(rig->engine, sum_name, &sum), 0);
	assert_int_equal(sum.cnt, HT_THREAD_NAMES_CAP);
	assert_int_equal(sum.other_cnt, 0);
	assert_int_equal(rig_stat(rig, HT_STAT_THREADS_OTHER), 0);

	rig_do(rig, step_use_more_names);
	sum = (struct name_sum){ 0 };
	assert_int_equal(engine_each_context(rig->engine, sum_name, &sum), 0);
	assert_int_equal(sum.cnt, HT_THREAD_NAMES_CAP + 1);
	assert_int_equal(sum.other_cnt, 1);
	assert_int_equal(rig_stat(rig, HT_STAT_THREADS_OTHER), 100);
	assert_int_equal(rig_live(rig).cnt, 100);
	assert_int_equal(rig_live(rig).bytes, 100 * 101);
	assert_int_equal(rig_stat(rig, HT_STAT_CONTEXTS_FULL), 0);

	be_image(rig, 1);
	rig_do(rig, step_use_names);
	assert_int_equal(rig_stat(rig, HT_STAT_THREADS_OTHER), 100);
}

RUN_RIG_TESTS()
