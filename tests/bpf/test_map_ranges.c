/* SPDX-License-Identifier: MIT */
/*
 * test_map_ranges.c - a map that several threads read: every entry once, whatever comes and goes.
 *
 * The ranges are much smaller than those of a snapshot, so that there are hundreds of gaps between
 * them, and so are the batches: down to one entry, in which no bucket of two fits.
 */
#include "../unit/unit.h"

#include <bpf/bpf.h>
#include <pthread.h>

#include "base/hmap.h"
#include "kernel/map_walk.h"

static int need_root(void **state)
{
	if (geteuid())
		skip();
	return 0;
}

#define ENTRIES_CAP 65536
#define STAYING_CNT 30000 /* keys from 0 on */
#define CHANGING_CNT 30000 /* keys behind them, which come and go */

struct entry_key {
	uint64_t number, reserved;
};
/* The same key may come again: that is another life, and has its own number. */
struct entry {
	uint64_t number, life;
	uint64_t reserved[4];
};

static const struct map_ranges_options shapes[] = {
	{ .shared_least = 1,
	  .reader_cap = 4,
	  .range_buckets = 4096,
	  .batch_cnt = 256,
	  .gap_cnt = 16 },
	{ .shared_least = 1, .reader_cap = 4, .range_buckets = 256, .batch_cnt = 64, .gap_cnt = 8 },
	{ .shared_least = 1, .reader_cap = 3, .range_buckets = 100, .batch_cnt = 1, .gap_cnt = 1 },
	{ .shared_least = 1,
	  .reader_cap = 1,
	  .range_buckets = 1000,
	  .batch_cnt = 100,
	  .gap_cnt = 100 },
	{ .shared_least = ENTRIES_CAP * 2 }, /* by the caller alone */
};
#define SHAPE_CNT (sizeof(shapes) / sizeof(*shapes))

static int make_map(uint32_t entries_cap)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);
	int fd = bpf_map_create(BPF_MAP_TYPE_HASH, "ranges", sizeof(struct entry_key),
				sizeof(struct entry), entries_cap, &opts);

	assert_true(fd >= 0);
	return fd;
}

static void put(int fd, uint64_t number, uint64_t life)
{
	const struct entry_key key = { .number = number };
	const struct entry entry = { .number = number, .life = life };

	assert_int_equal(bpf_map_update_elem(fd, &key, &entry, BPF_ANY), 0);
}

static void del(int fd, uint64_t number)
{
	const struct entry_key key = { .number = number };

	bpf_map_delete_elem(fd, &key);
}

static void put_staying(int fd)
{
	for (uint64_t i = 0; i < STAYING_CNT; i++)
		put(fd, i, 0);
}

/* What one walk has seen. No assertion in what threads call: a test is left in its own thread. */
struct seen {
	int fd;
	uint8_t staying_cnt[STAYING_CNT];
	struct hmap lives; /* of the others */
	size_t cnt, wrong_cnt, stop_at;
	bool is_under_way;
};

static int see(void *ctx, const void *k, const void *v)
{
	const struct entry_key *key = k;
	const struct entry *e = v;
	struct seen *s = ctx;

	s->wrong_cnt += __atomic_exchange_n(&s->is_under_way, true, __ATOMIC_RELAXED);
	s->wrong_cnt += e->number != key->number;
	s->cnt++;
	if (key->number < STAYING_CNT) {
		s->staying_cnt[key->number]++;
	} else {
		s->wrong_cnt += hmap_get(&s->lives, &e->life) != NULL;
		s->wrong_cnt += hmap_put(&s->lives, &e->life, 1) != 0;
	}
	__atomic_store_n(&s->is_under_way, false, __ATOMIC_RELAXED);
	return s->cnt == s->stop_at ? 77 : 0;
}

static int walk(struct seen *s, int fd, const struct map_ranges_options *shape,
		uint32_t entries_cap)
{
	struct map_ranges_options opts = *shape;
	const struct map_walk w = { fd, sizeof(struct entry_key), sizeof(struct entry), see, s };

	memset(s->staying_cnt, 0, sizeof(s->staying_cnt));
	s->cnt = s->wrong_cnt = 0;
	hmap_init(&s->lives, sizeof(uint64_t));
	opts.entries_cap = entries_cap;
	return map_ranges_walk(&w, &opts);
}

static struct seen seen;

static void check_staying(void)
{
	assert_int_equal(seen.wrong_cnt, 0);
	for (size_t i = 0; i < STAYING_CNT; i++)
		assert_int_equal(seen.staying_cnt[i], 1);
	hmap_release(&seen.lives);
}

TEST_WITH(test_at_rest, need_root, NULL)
{
	int fd = make_map(ENTRIES_CAP);

	put_staying(fd);
	for (size_t i = 0; i < SHAPE_CNT; i++) {
		assert_int_equal(walk(&seen, fd, &shapes[i], ENTRIES_CAP), 0);
		assert_int_equal(seen.cnt, STAYING_CNT);
		check_staying();
	}
	close(fd);
}

/* A map with another number of buckets than is thought is read all the same. */
TEST_WITH(test_other_size, need_root, NULL)
{
	int fd = make_map(ENTRIES_CAP);

	put_staying(fd);
	for (uint32_t cap = ENTRIES_CAP / 64; cap <= ENTRIES_CAP * 64; cap *= 2) {
		assert_int_equal(walk(&seen, fd, &shapes[0], cap), 0);
		check_staying();
	}
	close(fd);
}

TEST_WITH(test_few, need_root, NULL)
{
	int fd = make_map(ENTRIES_CAP);

	for (size_t cnt = 0; cnt < 4; cnt++) {
		for (size_t i = 0; i < SHAPE_CNT; i++) {
			assert_int_equal(walk(&seen, fd, &shapes[i], ENTRIES_CAP), 0);
			assert_int_equal(seen.cnt, cnt);
			hmap_release(&seen.lives);
		}
		put(fd, cnt, 0);
	}
	close(fd);
}

struct changing {
	int fd;
	bool is_over, is_emptying;
	uint64_t did_cnt;
};

/* Come and go one by one; or all of them, time and again. */
static void *change(void *arg)
{
	struct changing *c = arg;
	uint32_t seed = 1;
	uint64_t life = 0;

	while (!__atomic_load_n(&c->is_over, __ATOMIC_RELAXED)) {
		if (c->is_emptying) {
			for (uint64_t i = 0; i < CHANGING_CNT; i++)
				put(c->fd, STAYING_CNT + i, ++life);
			for (uint64_t i = 0; i < CHANGING_CNT; i++)
				del(c->fd, STAYING_CNT + i);
		}
		for (int i = 0; i < 1000 && !c->is_emptying; i++) {
			uint64_t number;

			seed = seed * 1664525 + 1013904223;
			number = STAYING_CNT + (seed >> 8) % CHANGING_CNT;
			/* Deleted first: an entry in place of another is a new life, too. */
			del(c->fd, number);
			if (seed & 0x80)
				put(c->fd, number, ++life);
		}
		__atomic_fetch_add(&c->did_cnt, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void check_changing(bool is_emptying, bool has_staying)
{
	struct changing c = { .fd = make_map(ENTRIES_CAP), .is_emptying = is_emptying };
	pthread_t thread;

	if (has_staying)
		put_staying(c.fd);
	assert_int_equal(pthread_create(&thread, NULL, change, &c), 0);
	while (!__atomic_load_n(&c.did_cnt, __ATOMIC_RELAXED))
		usleep(100);
	for (int i = 0; i < (getenv("HEAPTAP_VM") ? 10 : 50); i++) {
		assert_int_equal(walk(&seen, c.fd, &shapes[i % SHAPE_CNT], ENTRIES_CAP), 0);
		if (has_staying)
			check_staying();
		assert_int_equal(seen.wrong_cnt, 0);
		hmap_release(&seen.lives);
	}
	__atomic_store_n(&c.is_over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	close(c.fd);
}

TEST_WITH(test_changing, need_root, NULL)
{
	check_changing(false, true);
}

TEST_WITH(test_emptied, need_root, NULL)
{
	check_changing(true, true);
	check_changing(true, false);
}

/* Who stops gets its value back, and is not called again. */
TEST_WITH(test_stopped, need_root, NULL)
{
	static const size_t at[] = { 1, 100, 5000, STAYING_CNT - 1, STAYING_CNT };
	int fd = make_map(ENTRIES_CAP);

	put_staying(fd);
	for (size_t i = 0; i < SHAPE_CNT * 5; i++) {
		seen.stop_at = at[i % 5];
		assert_int_equal(walk(&seen, fd, &shapes[i / 5], ENTRIES_CAP), 77);
		assert_int_equal(seen.cnt, at[i % 5]);
		hmap_release(&seen.lives);
	}
	seen.stop_at = 0;
	close(fd);
}

static int close_it(void *ctx, const void *k, const void *v)
{
	struct seen *s = ctx;

	if (++s->cnt == STAYING_CNT / 2)
		close(s->fd);
	return 0;
}

/* What the kernel refuses to one reader ends the walk of all. */
TEST_WITH(test_refused, need_root, NULL)
{
	struct map_ranges_options opts = shapes[1];
	struct map_walk w = { -1, sizeof(struct entry_key), sizeof(struct entry), close_it, &seen };

	opts.entries_cap = ENTRIES_CAP;
	assert_int_equal(map_ranges_walk(&w, &opts), -EBADF);
	w.fd = seen.fd = make_map(ENTRIES_CAP);
	put_staying(w.fd);
	seen.cnt = 0;
	assert_int_equal(map_ranges_walk(&w, &opts), -EBADF);
	assert_true(seen.cnt >= STAYING_CNT / 2 && seen.cnt < STAYING_CNT);
}

RUN_TESTS()
