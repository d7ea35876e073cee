/* SPDX-License-Identifier: MIT */
/*
 * test_budget.c - what the overhead budget does to a target: hits that are counted per process, probes
 * that are taken out and put in by kind, allocations without frees.
 */
#include "rig.h"

#include "heaptap/sum.h"
#include "base/clock.h"

#define BLOCKS 50

static void *(*volatile do_malloc)(size_t) = malloc;
static void *(*volatile do_realloc)(void *, size_t) = realloc;
static void (*volatile do_free)(void *) = free;
static void *blocks[BLOCKS]; /* of the child */

static void step_alloc(volatile uint64_t *out)
{
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = do_malloc(1000);
}

static void step_free(volatile uint64_t *out)
{
	for (int i = 0; i < BLOCKS; i++)
		do_free(blocks[i]);
}

static void step_realloc(volatile uint64_t *out)
{
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = do_realloc(blocks[i], 5000);
}

static int add_objects(void *ctx, const struct ht_total_key *k, const struct ht_total *v)
{
	double *sum = ctx;

	*sum += ht_sum_value(&v->alloc_objects_16, 16);
	return 0;
}

static double allocated(struct rig *rig)
{
	double sum = 0;

	assert_int_equal(engine_each_total(rig->engine, add_objects, &sum), 0);
	return sum;
}

static struct ht_hits hits_of(struct rig *rig)
{
	struct ht_hits hits;

	assert_int_equal(tracker_read_hits(rig->tracker, rig->pid, &hits), 0);
	return hits;
}

static void keep(struct rig *rig, enum probes_kept kept)
{
	uint64_t ticket;

	assert_int_equal(tracker_keep_probes(rig->tracker, rig->pid, kept, &ticket), 0);
	tracker_wait_detached(rig->tracker, ticket);
}

static void change(struct rig *rig, bool is_alloc_only)
{
	const struct engine_change c = { 0, is_alloc_only };

	assert_int_equal(engine_change_target(rig->engine, rig->pid, &c), 0);
}

static struct rig *open_rig(void **state)
{
	return rig_open(rig_mode(state), 1, 10000, 1000);
}

/* Each hit once, and the sum is what the counters of all say. */
TEST(test_hits)
{
	struct ht_hits hits;
	struct rig *rig = open_rig(state);

	rig_do(rig, step_alloc);
	rig_do(rig, step_free);
	hits = hits_of(rig);
	assert_int_equal(hits.alloc_cnt, BLOCKS);
	assert_int_equal(hits.free_cnt, BLOCKS);
	assert_int_equal(hits.return_cnt, BLOCKS);
	assert_int_equal(hits.sample_cnt, BLOCKS);
	assert_true(hits.stack_ns > 0);
	assert_int_equal(rig_stat(rig, HT_STAT_HITS_ALLOC), BLOCKS);
	assert_int_equal(rig_stat(rig, HT_STAT_HITS_FREE), BLOCKS);
}

/* Places are given out, given back, and given out again with what was counted there. */
TEST(test_places)
{
	struct rig_options opts = { rig_mode(state), 1, 10000, 1000, true };
	struct ht_hits hits;
	uint32_t idx, other;
	struct rig *rig = rig_open_with(&opts);

	rig_do(rig, step_alloc);
	assert_in_range(hits_of(rig).alloc_cnt, BLOCKS, UINT32_MAX);
	idx = engine_hits_take(rig->engine);
	other = engine_hits_take(rig->engine);
	assert_true(idx && other && idx != other);
	assert_int_equal(engine_read_hits(rig->engine, idx, &hits), 0);
	assert_int_equal(hits.alloc_cnt, 0);
	engine_hits_give(rig->engine, idx);
	assert_int_equal(engine_hits_take(rig->engine), idx);
}

/* Frees are not seen: nothing is outstanding, what is allocated is counted. */
TEST(test_alloc_only)
{
	struct rig *rig = open_rig(state);

	rig_do(rig, step_alloc);
	assert_int_equal(rig_live(rig).cnt, BLOCKS);
	change(rig, true);
	keep(rig, PROBES_ALLOCS);
	assert_int_equal(engine_drop_live(rig->engine, rig->pid,
					  tracker_generation(rig->tracker, rig->pid), NULL),
			 0);
	assert_int_equal(rig_live(rig).cnt, 0);
	assert_int_equal(rig_stat(rig, HT_STAT_DROPPED), BLOCKS);

	rig_do(rig, step_realloc);
	rig_do(rig, step_free);
	rig_do(rig, step_alloc);
	assert_int_equal(rig_live(rig).cnt, 0);
	assert_int_equal(hits_of(rig).free_cnt, 0);
	assert_int_equal(rig_stat(rig, HT_STAT_ALLOC_ONLY), 2 * BLOCKS);
	assert_float_equal(allocated(rig), 3 * BLOCKS, 1e-6);

	/* And again with frees: only what comes from now on. */
	keep(rig, PROBES_ALL);
	change(rig, false);
	rig_do(rig, step_free);
	assert_int_equal(rig_live(rig).cnt, 0);
	rig_do(rig, step_alloc);
	assert_int_equal(rig_live(rig).cnt, BLOCKS);
	rig_do(rig, step_free);
	assert_int_equal(rig_live(rig).cnt, 0);
	assert_int_equal(rig_stat(rig, HT_STAT_MISSED_FREE), 0);
}

/* Probes go while nobody waits; when they come again nothing is counted twice. */
TEST(test_off_and_on)
{
	uint64_t ticket;
	struct rig *rig = open_rig(state);

	change(rig, true);
	assert_int_equal(tracker_keep_probes(rig->tracker, rig->pid, PROBES_NONE, &ticket), 0);
	assert_true(ticket > 0);
	while (!guardian_is_detached(rig->guardian, ticket))
		usleep(1000);
	rig_do(rig, step_alloc);
	assert_int_equal(hits_of(rig).alloc_cnt, 0);
	assert_float_equal(allocated(rig), 0, 0);

	keep(rig, PROBES_ALLOCS);
	rig_do(rig, step_alloc);
	rig_do(rig, step_free);
	assert_int_equal(hits_of(rig).alloc_cnt, BLOCKS);
	assert_int_equal(hits_of(rig).free_cnt, 0);
	assert_float_equal(allocated(rig), BLOCKS, 1e-6);
	assert_int_equal(rig_live(rig).cnt, 0);
}

/* CPU time and hits of a process are counted from the same moment on: before its first probe. */
TEST(test_since_followed)
{
	uint64_t ns;
	struct rig *rig = open_rig(state);

	assert_in_range(tracker_followed_ns(rig->tracker, rig->pid), 1, now_ns());
	for (int i = 0; i < 20; i++)
		rig_do(rig, step_alloc);
	assert_int_equal(tracker_read_cpu(rig->tracker, rig->pid, &ns), 0);
	assert_true(ns > 0 && ns < now_ns() - tracker_followed_ns(rig->tracker, rig->pid));
	assert_int_equal(tracker_read_cpu(rig->tracker, rig->pid + 1, &ns), -ESRCH);
}

/* The real programs take some time, and not much. */
TEST(test_program_cost)
{
	double ns;
	int err;
	struct rig *rig = open_rig(state);

	err = engine_measure_hits(rig->engine, true);
	if (err == -ENOTSUP)
		skip();
	assert_int_equal(err, 0);
	assert_int_equal(engine_hit_ns(rig->engine, &ns), -EAGAIN);
	for (int i = 0; i < 20; i++) {
		rig_do(rig, step_alloc);
		rig_do(rig, step_free);
	}
	assert_int_equal(engine_hit_ns(rig->engine, &ns), 0);
	assert_true(ns > 10 && ns < 1e6);
	/* each answer is of the hits since the last one */
	assert_int_equal(engine_hit_ns(rig->engine, &ns), -EAGAIN);
	assert_int_equal(engine_measure_hits(rig->engine, false), 0);
}

RUN_RIG_TESTS()
