/* SPDX-License-Identifier: MIT */
/*
 * test_shares.c - one process takes all that it can of the tables that all share: another one, which
 * comes later, loses nothing, and what was refused is counted for the first one alone.
 */
#include "rig.h"

#include "base/clock.h"
#include "heaptap/scope.h"
#include "kernel/engine_priv.h"
#include "kernel/reclaim.h"

#define LIVE_CAP 900
#define STACK_CAP 96
#define GREEDY_BLOCKS 2000
#define DEEPEST 120 /* as many stacks */
#define MODEST_BLOCKS 100 /* a free third of the live map is 300, and it may have 2/3 of that */
#define MODEST_STACKS 10
#define GREEDY_TASKS 500
#define MODEST_TASKS 5
#define FREE_TASKS 90 /* that others have left */
#define LIMIT_NS (20 * NS_PER_S)

static void *(*volatile do_malloc)(size_t) = malloc;
static void (*volatile do_free)(void *) = free;
static void *blocks[GREEDY_BLOCKS];

static void fill(int block_cnt, int stack_cnt)
{
	for (int i = 0; i < block_cnt; i++)
		blocks[i] = rig_alloc_below(i % stack_cnt, 101);
}

static void step_greedy(volatile uint64_t *out)
{
	fill(GREEDY_BLOCKS, DEEPEST);
}

static void step_modest(volatile uint64_t *out)
{
	fill(MODEST_BLOCKS, MODEST_STACKS);
}

static void step_free_some(volatile uint64_t *out)
{
	for (int i = 0; i < 100; i++)
		do_free(blocks[i]);
}

static void step_again(volatile uint64_t *out)
{
	for (int i = 0; i < 50; i++)
		blocks[i] = rig_alloc_below(0, 101);
}

/* Each holds one block, and never ends. */
static void begin_tasks(uint64_t cnt)
{
	heaptap_node query = heaptap_task("query");

	for (uint64_t i = 0; i < cnt; i++) {
		heaptap_state before = heaptap_enter(query, 1000 + i);

		blocks[i] = do_malloc(101);
		heaptap_leave(before);
	}
}

static void step_endless_tasks(volatile uint64_t *out)
{
	begin_tasks(GREEDY_TASKS);
}

static void step_few_tasks(volatile uint64_t *out)
{
	begin_tasks(MODEST_TASKS);
}

/* Ten end, and ten hold nothing any more. */
static void step_end_tasks(volatile uint64_t *out)
{
	heaptap_node query = heaptap_task("query");

	for (uint64_t i = 0; i < 20; i++) {
		do_free(blocks[i]);
		if (i < 10)
			heaptap_task_exit(query, 1000 + i);
	}
}

static struct rig *open_many(void **state)
{
	const struct rig_options opts = { rig_mode(state), 1, LIVE_CAP, STACK_CAP, true };

	return rig_open_with(&opts);
}

/* Another process of the same engine; the first one stays. */
static struct rig beside(struct rig *rig)
{
	struct rig other;

	rig_start(&other);
	other.engine = rig->engine;
	assert_int_equal(tracker_add(rig->tracker, other.pid), 0);
	return other;
}

static void end_beside(struct rig *other)
{
	kill(other->pid, SIGKILL);
	waitpid(other->pid, NULL, 0);
	close(other->fd);
	munmap((void *)other->out, RIG_OUT_CNT * sizeof(uint64_t));
}

struct owned {
	uint32_t pid;
	size_t live, stackless;
};

static int count_owned(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct owned *o = ctx;

	o->live += k->tgid == o->pid;
	o->stackless += k->tgid == o->pid && !v->stack_id;
	return 0;
}

static struct owned owned(struct rig *rig, pid_t pid)
{
	struct owned o = { .pid = (uint32_t)pid };

	assert_int_equal(engine_each_live(rig->engine, count_owned, &o), 0);
	return o;
}

static struct ht_image image(struct rig *rig, pid_t pid)
{
	uint32_t generation = tracker_generation(rig->tracker, pid);
	struct ht_image image;

	assert_int_equal(engine_get_image(rig->engine, pid, generation, &image), 0);
	return image;
}

TEST(test_modest)
{
	struct ht_image of_greedy, of_modest;
	struct rig *greedy = open_many(state), modest;
	struct owned o;

	rig_do(greedy, step_greedy);
	of_greedy = image(greedy, greedy->pid);
	/* two thirds */
	assert_int_equal(of_greedy.used[HT_SHARED_LIVE], LIVE_CAP * 2 / 3);
	assert_int_equal(of_greedy.used[HT_SHARED_STACKS], STACK_CAP * 2 / 3);
	assert_int_equal(owned(greedy, greedy->pid).live, LIVE_CAP * 2 / 3);
	assert_int_equal(of_greedy.refused[HT_SHARED_LIVE], GREEDY_BLOCKS - LIVE_CAP * 2 / 3);
	assert_true(of_greedy.refused[HT_SHARED_STACKS] > 0);
	assert_int_equal(rig_stat(greedy, HT_STAT_SHARE_LIVE), of_greedy.refused[HT_SHARED_LIVE]);
	assert_int_equal(rig_stat(greedy, HT_STAT_LIVE_FULL), 0);
	assert_int_equal(rig_stat(greedy, HT_STAT_STACKS_FULL), 0);

	modest = beside(greedy);
	rig_do(&modest, step_modest);
	o = owned(greedy, modest.pid);
	assert_int_equal(o.live, MODEST_BLOCKS);
	assert_int_equal(o.stackless, 0);
	of_modest = image(greedy, modest.pid);
	for (int i = 0; i < HT_SHARED_CNT; i++)
		assert_int_equal(of_modest.refused[i], 0);

	/* What it frees itself it may use again, as far as the other one has left it. */
	rig_do(greedy, step_free_some);
	assert_int_equal(image(greedy, greedy->pid).used[HT_SHARED_LIVE], LIVE_CAP * 2 / 3 - 100);
	rig_do(greedy, step_again);
	assert_true(image(greedy, greedy->pid).used[HT_SHARED_LIVE] <= LIVE_CAP * 2 / 3);
	end_beside(&modest);
}

/* What was taken out is free: the books agree with the maps. */
TEST(test_ended)
{
	uint64_t end_ns = now_ns() + LIMIT_NS;
	struct rig *rig = open_many(state), next;

	rig_do(rig, step_greedy);
	kill(rig->pid, SIGKILL);
	waitpid(rig->pid, NULL, 0);
	while (tracker_running_cnt(rig->tracker) && now_ns() < end_ns) {
		rig_settle(rig);
		usleep(10000);
	}
	while (reclaim_counts(tracker_reclaim(rig->tracker))->cycles < 2 && now_ns() < end_ns) {
		rig_settle(rig);
		reclaim_ask(tracker_reclaim(rig->tracker));
		assert_int_equal(reclaim_run(tracker_reclaim(rig->tracker), UINT64_MAX, NS_PER_MS),
				 0);
	}
	for (int i = 0; i < HT_SHARED_CNT; i++)
		assert_int_equal(rig->engine->skel->bss->share_used[i], 0);
	next = beside(rig);
	rig_do(&next, step_greedy);
	assert_int_equal(image(rig, next.pid).used[HT_SHARED_LIVE], LIVE_CAP * 2 / 3);
	assert_int_equal(image(rig, next.pid).used[HT_SHARED_STACKS], STACK_CAP * 2 / 3);
	end_beside(&next);
}

/* One process alone, known from the start, has the tables to itself. */
TEST(test_alone)
{
	struct rig *rig = rig_open(rig_mode(state), 1, LIVE_CAP, STACK_CAP);

	rig_do(rig, step_greedy);
	assert_int_equal(rig_live(rig).cnt, LIVE_CAP);
	assert_int_equal(rig_stat(rig, HT_STAT_SHARE_LIVE), 0);
	assert_true(rig_stat(rig, HT_STAT_STACKS_FULL) > 0);
}

struct tasks {
	struct rig *rig;
	uint32_t pid;
	size_t cnt, samples;
	bool forgets; /* those that hold nothing */
};

static int on_task(void *ctx, const struct ht_instance_key *k, const struct ht_instance *v)
{
	struct tasks *t = ctx;

	if (v->owner_tgid != t->pid)
		return 0;
	t->cnt++;
	t->samples += v->alloc_samples;
	if (t->forgets && !v->inuse_objects_16)
		assert_int_equal(engine_del_instance(t->rig->engine, k), 0);
	return 0;
}

static struct tasks tasks_of(struct rig *rig, pid_t pid, bool forgets)
{
	struct tasks t = { .rig = rig, .pid = (uint32_t)pid, .forgets = forgets };

	assert_int_equal(engine_each_instance(rig->engine, on_task, &t), 0);
	return t;
}

/* One process makes tasks without end: those of another one are told apart all the same. */
TEST(test_tasks)
{
	struct rig *greedy = open_many(state), modest;
	volatile uint32_t *used;
	struct ht_image of_greedy;

	used = &greedy->engine->skel->bss->share_used[HT_SHARED_INSTANCES];
	*used = HT_INSTANCES_CAP - FREE_TASKS;
	rig_do(greedy, step_endless_tasks);
	of_greedy = image(greedy, greedy->pid);
	assert_int_equal(of_greedy.used[HT_SHARED_INSTANCES], FREE_TASKS * 2 / 3);
	assert_int_equal(of_greedy.refused[HT_SHARED_INSTANCES], GREEDY_TASKS - FREE_TASKS * 2 / 3);
	assert_int_equal(tasks_of(greedy, greedy->pid, false).cnt, FREE_TASKS * 2 / 3);
	assert_int_equal(rig_stat(greedy, HT_STAT_SHARE_INSTANCES),
			 of_greedy.refused[HT_SHARED_INSTANCES]);
	assert_int_equal(rig_stat(greedy, HT_STAT_INSTANCES_FULL), 0);
	/* Only the task is not known: the block is. */
	assert_true(owned(greedy, greedy->pid).live >= GREEDY_TASKS);

	modest = beside(greedy);
	rig_do(&modest, step_few_tasks);
	assert_int_equal(tasks_of(greedy, modest.pid, false).samples, MODEST_TASKS);
	assert_int_equal(image(greedy, modest.pid).refused[HT_SHARED_INSTANCES], 0);

	/* What is over is given back, whoever finds it to be: BPF, and user space. */
	rig_do(greedy, step_end_tasks);
	assert_int_equal(rig_stat(greedy, HT_STAT_INSTANCES_ENDED), 10);
	assert_int_equal(image(greedy, greedy->pid).used[HT_SHARED_INSTANCES],
			 FREE_TASKS * 2 / 3 - 10);
	tasks_of(greedy, greedy->pid, true);
	assert_int_equal(image(greedy, greedy->pid).used[HT_SHARED_INSTANCES],
			 FREE_TASKS * 2 / 3 - 20);
	assert_int_equal(*used,
			 HT_INSTANCES_CAP - FREE_TASKS + FREE_TASKS * 2 / 3 - 20 + MODEST_TASKS);
	end_beside(&modest);
}

RUN_RIG_TESTS()
