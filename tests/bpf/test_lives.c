/* SPDX-License-Identifier: MIT */
/* test_lives.c - the life of a target around its allocations: threads, exec, exit, lost events. */
#include "rig.h"

#include <pthread.h>

#include "profile/estimate.h"

#define THREAD_CNT 8
#define SLOT_CNT 256

static void *(*volatile do_malloc)(size_t) = malloc;
static void (*volatile do_free)(void *) = free;

/* Blocks that any thread may take over; the block's first word is its size. */
static uint64_t *slots[SLOT_CNT];

static void *hand_over(void *arg)
{
	uint32_t seed = (uintptr_t)arg;

	for (int i = 0; i < 4000; i++) {
		uint64_t *block, *old;
		size_t bytes;

		seed = seed * 1664525 + 1013904223;
		bytes = 8 + (seed >> 20);
		block = seed & 0x8000 ? do_malloc(bytes) : NULL;
		if (block)
			*block = bytes;
		old = __atomic_exchange_n(&slots[(seed >> 8) % SLOT_CNT], block, __ATOMIC_SEQ_CST);
		do_free(old);
	}
	return NULL;
}

static void step_race(volatile uint64_t *out)
{
	static pthread_t threads[THREAD_CNT];

	for (uintptr_t i = 0; i < THREAD_CNT; i++)
		pthread_create(&threads[i], NULL, hand_over, (void *)(i + 1));
	for (int i = 0; i < THREAD_CNT; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < SLOT_CNT; i++) {
		if (slots[i]) {
			out[0]++;
			out[1] += *slots[i];
		}
	}
}

struct worker_sum {
	uint32_t main_tid;
	uint64_t cnt, bytes, main_cnt;
};

/* The main thread makes the threads' TLS blocks, which are not in the ledger. */
static int add_worker(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct worker_sum *sum = ctx;

	if (v->tid == sum->main_tid) {
		sum->main_cnt++;
		return 0;
	}
	sum->cnt++;
	sum->bytes += v->size_bytes;
	return 0;
}

/* At the end the live map is the program's own ledger. */
TEST(test_race)
{
	struct worker_sum workers = { 0 };
	struct rig_sum sum;
	struct rig *rig = rig_open(rig_mode(state), 1, 65536, 4096);

	sum = rig_live(rig);
	assert_int_equal(sum.cnt, 0);
	rig_do(rig, step_race);
	workers.main_tid = rig->pid;
	assert_int_equal(engine_each_live(rig->engine, add_worker, &workers), 0);
	assert_true(workers.main_cnt <= THREAD_CNT);
	assert_int_equal(rig_stat(rig, HT_STAT_MISSED_FREE), 0);
	assert_int_equal(rig_stat(rig, HT_STAT_LIVE_FULL), 0);
	assert_int_equal(workers.cnt, rig->out[0]);
	assert_int_equal(workers.bytes, rig->out[1]);
}

static void step_sizes(volatile uint64_t *out)
{
	for (size_t bytes = 1; bytes < 3000000; bytes += bytes / 40 + 1) {
		do_malloc(bytes);
		out[0]++;
	}
}

static int check_threshold(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	uint64_t low, high;

	estimate_bucket_range(estimate_bucket(v->size_bytes), &low, &high);
	assert_int_equal(v->threshold,
			 estimate_threshold(estimate_probability(low + (high - low) / 2, 4096)));
	return 0;
}

/* What is stored is what the table says for the size's bucket, over all sizes. */
TEST(test_buckets)
{
	struct rig_sum sum;
	struct rig *rig = rig_open(rig_mode(state), 4096, 65536, 4096);

	rig_do(rig, step_sizes);
	sum = rig_live(rig);
	assert_true(sum.cnt > 100 && sum.cnt < rig->out[0]);
	assert_int_equal(engine_each_live(rig->engine, check_threshold, NULL), 0);
}

static void step_forks(volatile uint64_t *out)
{
	for (int i = 0; i < 7000; i++) {
		pid_t pid = vfork();

		if (!pid)
			_exit(0);
		if (pid > 0 && waitpid(pid, NULL, 0) == pid)
			out[0]++;
	}
}

/* The event of the end does not fit into the ring: it is noticed all the same. */
TEST(test_lost_exit)
{
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 1024);

	rig_do(rig, step_forks);
	assert_int_equal(rig->out[0], 7000);
	kill(rig->pid, SIGKILL);
	waitpid(rig->pid, NULL, 0);
	assert_true(rig_stat(rig, HT_STAT_EVENTS_LOST) > 0);
	assert_int_equal(engine_events_drain(rig->engine), 0);
	assert_int_equal(tracker_running_cnt(rig->tracker), 1);
	for (int i = 0; i < 25 && tracker_running_cnt(rig->tracker); i++) {
		assert_int_equal(tracker_work(rig->tracker), 0);
		usleep(100000);
	}
	assert_int_equal(tracker_running_cnt(rig->tracker), 0);
}

RUN_RIG_TESTS()
