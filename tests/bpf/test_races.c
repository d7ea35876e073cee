/* SPDX-License-Identifier: MIT */
/*
 * test_races.c - attaching, reading and detaching while threads allocate, hand over and free.
 *
 * The threads' sizes tell who allocated: thread i makes blocks of i modulo 16 bytes, so an entry
 * that was put together from two would show.
 */
#include "rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "heaptap/sum.h"
#include "proc/process.h"

#define THREAD_CNT 6
#define SLOT_CNT 256

static void *(*volatile do_malloc)(size_t) = malloc;
static void (*volatile do_free)(void *) = free;

/* What is in shared memory. */
enum {
	OUT_STOP, /* the rig: the threads are to end */
	OUT_IS_ATTACHED, /* the rig: allocations from now on must be seen */
	OUT_TID, /* per thread */
	OUT_SLOTS = OUT_TID + THREAD_CNT, /* address, size and OUT_IS_ATTACHED before it was made */
};

struct block {
	uint64_t bytes, was_attached;
};
static struct block *_Atomic slots[SLOT_CNT];
static pthread_t threads[THREAD_CNT];
static volatile uint64_t *shared;

static void *hand_over(void *arg)
{
	uintptr_t number = (uintptr_t)arg;
	uint32_t seed = (uint32_t)number + 1;

	shared[OUT_TID + number] = (uint64_t)syscall(SYS_gettid);
	while (!shared[OUT_STOP]) {
		uint64_t was_attached = shared[OUT_IS_ATTACHED];
		struct block *block = NULL;
		size_t bytes;

		seed = seed * 1664525 + 1013904223;
		bytes = ((seed >> 20) & -16U) + 16 + number;
		if (seed & 0x8000)
			block = do_malloc(bytes);
		if (block)
			*block = (struct block){ bytes, was_attached };
		do_free(atomic_exchange(&slots[(seed >> 8) % SLOT_CNT], block));
	}
	return NULL;
}

static void step_begin(volatile uint64_t *out)
{
	shared = out;
	for (uintptr_t i = 0; i < THREAD_CNT; i++)
		pthread_create(&threads[i], NULL, hand_over, (void *)i);
	for (int i = 0; i < THREAD_CNT; i++)
		while (!out[OUT_TID + i])
			usleep(1000);
}

/* What the program holds: the ledger. */
static void step_end(volatile uint64_t *out)
{
	for (int i = 0; i < THREAD_CNT; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < SLOT_CNT; i++) {
		const struct block *block = slots[i];

		out[OUT_SLOTS + 3 * i] = (uintptr_t)block;
		out[OUT_SLOTS + 3 * i + 1] = block ? block->bytes : 0;
		out[OUT_SLOTS + 3 * i + 2] = block ? block->was_attached : 0;
	}
}

static bool is_slow_machine(void)
{
	return getenv("HEAPTAP_VM") != NULL;
}

/* What one reading of the live map found. */
struct reading {
	const struct rig *rig;
	VEC(struct ht_live_key) keys;
	uint64_t now_ns;
};

/* -1: made by no thread of the race (the main thread makes their TLS). */
static int thread_of(const struct rig *rig, uint32_t tid)
{
	for (int i = 0; i < THREAD_CNT; i++)
		if (rig->out[OUT_TID + i] == tid)
			return i;
	return -1;
}

static int read_entry(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct reading *r = ctx;
	int thread = thread_of(r->rig, v->tid);
	struct ht_stack stack;

	assert_int_equal(k->tgid, r->rig->pid);
	assert_int_equal(v->threshold, HT_KEEP_ALWAYS);
	assert_int_not_equal(v->context_id, 0);
	assert_true(thread >= 0 || v->tid == (uint32_t)r->rig->pid);
	if (thread >= 0)
		assert_int_equal(v->size_bytes % 16, thread);
	assert_int_equal(engine_get_stack(r->rig->engine, v->stack_id, &stack), 0);
	assert_int_equal(stack.end, HT_END_COMPLETE);
	assert_int_equal(vec_push(&r->keys, *k), 0);
	return 0;
}

static int compare_keys(const void *a, const void *b)
{
	const struct ht_live_key *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Every block at most once, no entry of two halves. */
static size_t check_reading(const struct rig *rig)
{
	struct reading r = { .rig = rig };
	size_t cnt;

	assert_int_equal(engine_each_live(rig->engine, read_entry, &r), 0);
	cnt = r.keys.cnt;
	if (cnt)
		qsort(r.keys.data, cnt, sizeof(*r.keys.data), compare_keys);
	for (size_t i = 1; i < cnt; i++)
		assert_int_not_equal(r.keys.data[i].addr, r.keys.data[i - 1].addr);
	vec_release(&r.keys);
	return cnt;
}

struct total_check {
	uint64_t alloc_samples, free_samples;
};

/* No stack has more freed than allocated. */
static int check_total(void *ctx, const struct ht_total_key *k, const struct ht_total *v)
{
	struct total_check *sum = ctx;

	assert_true(v->free_samples <= v->alloc_samples);
	assert_true(ht_sum_value(&v->free_bytes_8, 8) <= ht_sum_value(&v->alloc_bytes_8, 8));
	assert_true(ht_sum_value(&v->free_objects_16, 16) <=
		    ht_sum_value(&v->alloc_objects_16, 16));
	sum->alloc_samples += v->alloc_samples;
	sum->free_samples += v->free_samples;
	return 0;
}

struct ledger_check {
	const struct rig *rig;
	uint64_t held_cnt;
};

/* What is recorded is held, with the size that was asked for. */
static int check_held(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct ledger_check *c = ctx;

	if (thread_of(c->rig, v->tid) < 0)
		return 0;
	for (int i = 0; i < SLOT_CNT; i++) {
		if (c->rig->out[OUT_SLOTS + 3 * i] != k->addr)
			continue;
		assert_int_equal(c->rig->out[OUT_SLOTS + 3 * i + 1], v->size_bytes);
		c->held_cnt += c->rig->out[OUT_SLOTS + 3 * i + 2];
		return 0;
	}
	fail_msg("a block of %llu bytes that nobody holds", (unsigned long long)v->size_bytes);
	return 0;
}

static struct rig *begin(enum attach_mode mode)
{
	const struct rig_options opts = { mode, 1, 65536, 4096, false };
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	rig_start(rig);
	rig_do(rig, step_begin);
	rig_attach(rig, &opts);
	rig->out[OUT_IS_ATTACHED] = 1;
	return unit_keep(rig, rig_release);
}

TEST(test_attach)
{
	struct ledger_check ledger = { 0 };
	struct total_check sum = { 0 };
	uint64_t wanted_cnt = 0, stats[HT_STAT_CNT];
	size_t read_cnt = 0;
	struct rig *rig = begin(rig_mode(state));

	for (int i = 0; i < (is_slow_machine() ? 20 : 100); i++) {
		read_cnt += check_reading(rig);
		rig_settle(rig);
		usleep(5000);
	}
	assert_true(read_cnt > 1000);
	rig->out[OUT_STOP] = 1;
	rig_do(rig, step_end);

	ledger.rig = rig;
	assert_int_equal(engine_each_live(rig->engine, check_held, &ledger), 0);
	for (int i = 0; i < SLOT_CNT; i++)
		wanted_cnt += rig->out[OUT_SLOTS + 3 * i + 2];
	assert_true(wanted_cnt > 10);
	assert_int_equal(ledger.held_cnt, wanted_cnt);

	assert_int_equal(engine_read_stats(rig->engine, stats), 0);
	assert_int_equal(engine_each_total(rig->engine, check_total, &sum), 0);
	assert_int_equal(sum.alloc_samples, stats[HT_STAT_SAMPLES]);
	assert_int_equal(sum.free_samples, stats[HT_STAT_FREES]);
	assert_int_equal(rig_live(rig).cnt, stats[HT_STAT_SAMPLES] - stats[HT_STAT_FREES]);
	assert_int_equal(stats[HT_STAT_MISSED_FREE], 0);
	assert_int_equal(stats[HT_STAT_LIVE_FULL], 0);
}

static void read_text(pid_t pid, const struct proc_maps *maps, uint8_t *to, size_t bytes)
{
	const struct proc_map *m;
	char path[64];
	size_t pos = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	vec_each(&maps->maps, m) {
		size_t len = m->end_addr - m->start_addr;

		if (!m->is_exec || m->path[0] != '/')
			continue;
		assert_true(pos + len <= bytes);
		assert_int_equal(pread(fd, to + pos, len, (off_t)m->start_addr), len);
		pos += len;
	}
	close(fd);
	assert_int_equal(pos, bytes);
}

static size_t text_bytes(const struct proc_maps *maps)
{
	const struct proc_map *m;
	size_t bytes = 0;

	vec_each(&maps->maps, m)
		if (m->is_exec && m->path[0] == '/')
			bytes += m->end_addr - m->start_addr;
	return bytes;
}

/* After a detach in the middle of the race nothing of the program's text has changed. */
TEST(test_detach)
{
	const struct rig_options opts = { rig_mode(state), 1, 65536, 4096, false };
	struct proc_maps maps = { 0 };
	uint8_t *before, *now;
	uint64_t hits;
	size_t bytes;
	struct rig rig;

	rig_start(&rig);
	rig_do(&rig, step_begin);
	assert_int_equal(proc_maps_read(NULL, rig.pid, rig.pid, &maps), 0);
	bytes = text_bytes(&maps);
	assert_true(bytes > 0);
	before = malloc(bytes);
	now = malloc(bytes);
	assert_non_null(before);
	assert_non_null(now);
	read_text(rig.pid, &maps, before, bytes);

	rig_attach(&rig, &opts);
	read_text(rig.pid, &maps, now, bytes);
	assert_memory_not_equal(now, before, bytes);
	tracker_stop(rig.tracker);
	read_text(rig.pid, &maps, now, bytes);
	assert_memory_equal(now, before, bytes);

	/* And nothing is hit any more. */
	hits = rig_stat(&rig, HT_STAT_HITS_ALLOC) + rig_stat(&rig, HT_STAT_HITS_FREE);
	usleep(20000);
	assert_int_equal(rig_stat(&rig, HT_STAT_HITS_ALLOC) + rig_stat(&rig, HT_STAT_HITS_FREE),
			 hits);
	assert_true(hits > 0);
	rig.out[OUT_STOP] = 1;
	rig_do(&rig, step_end);
	free(before);
	free(now);
	proc_maps_release(&maps);
	rig_close(&rig);
}

RUN_RIG_TESTS()
