/* SPDX-License-Identifier: MIT */
/*
 * map_walk.c - see map_walk.h. With -ENOSPC (a bucket longer than the batch) the batch is enlarged
 * and the walk goes on where it was.
 */
#include "kernel/map_walk.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

/* Memory of one batch, and limits of its growth. */
#define BATCH_BYTES (256 << 10)
#define BATCH_LEAST 64
#define BATCH_CAP (1 << 20)

void map_cursor_release(struct map_cursor *c)
{
	free(c->keys);
	free(c->values);
	memset(c, 0, sizeof(*c));
}

static int make_room(struct map_cursor *c, const struct map_walk *w)
{
	size_t fitting = BATCH_BYTES / (w->key_bytes + w->value_bytes);

	if (c->keys)
		return 0;
	if (!c->batch_cnt)
		c->batch_cnt = fitting < BATCH_LEAST ? BATCH_LEAST : fitting;
	c->keys = malloc(w->key_bytes * c->batch_cnt);
	c->values = malloc(w->value_bytes * c->batch_cnt);
	return c->keys && c->values ? 0 : -ENOMEM;
}

static int deliver(const struct map_walk *w, const char *keys, const char *values, uint32_t cnt)
{
	int err = 0;

	for (uint32_t i = 0; i < cnt && !err; i++)
		err = w->fn(w->ctx, keys + i * w->key_bytes, values + i * w->value_bytes);
	return err;
}

int map_cursor_next(struct map_cursor *c, const struct map_walk *w)
{
	uint32_t cnt;
	int err = make_room(c, w);

	if (err || c->at_end)
		return err;
	cnt = c->batch_cnt;
	err = bpf_map_lookup_batch(w->fd, c->has_begun ? c->position : NULL, c->position, c->keys,
				   c->values, &cnt, NULL);
	if (err == -ENOSPC && c->batch_cnt < BATCH_CAP) {
		free(c->keys);
		free(c->values);
		c->keys = c->values = NULL;
		c->batch_cnt *= 4;
		return 0;
	}
	c->at_end = err == -ENOENT;
	if (err && !c->at_end)
		return err;
	c->has_begun = true;
	c->read_cnt += cnt;
	return deliver(w, c->keys, c->values, cnt);
}

int map_walk_all(const struct map_walk *w)
{
	struct map_cursor c = { 0 };
	int err = 0;

	while (!c.at_end && !err)
		err = map_cursor_next(&c, w);
	map_cursor_release(&c);
	return err;
}

int map_delete_keys(int fd, const void *keys, size_t key_bytes, size_t cnt,
		    map_deleted_fn on_deleted, void *ctx)
{
	const char *at = keys, *end = at + cnt * key_bytes;

	while (at < end) {
		uint32_t done = (uint32_t)((size_t)(end - at) / key_bytes);
		int err = bpf_map_delete_batch(fd, at, &done, NULL);

		if (err && err != -ENOENT)
			return err;
		for (; done--; at += key_bytes)
			on_deleted(ctx, at);
		if (err)
			at += key_bytes; /* somebody else has deleted it */
	}
	return 0;
}

/*
 * The kernel copies a hash map bucket by bucket, under the bucket's lock: some 300 ns an entry, half of which
 * it waits for memory. Larger batches or more buckets do not change that; only more readers do. (A BPF iterator
 * takes no lock, but may therefore lose entries: an entry that is deleted and reused under it leads it into
 * another bucket.)
 *
 * For a hash map the position of a batch is the index of a bucket (kernel 057996380a42, so from 5.6 to 6.18 at
 * least), and there are max_entries buckets, rounded up to a power of two. So a reader can begin anywhere. The
 * table is cut into ranges, and the readers take one after the other, so that a reader that waits for a CPU
 * does not delay the others. If there were fewer buckets than we think, the ranges behind them would be empty;
 * if there were more, they would be in the last range, which has no end.
 *
 * But a reader cannot end anywhere: a batch is bounded by its entries, and the kernel does not say which bucket
 * an entry is from. A batch that goes beyond the end of the range is thrown away, and fewer entries are asked
 * for. Finally some buckets in front of the end are left: the gap.
 *
 * Gaps are read after all ranges. First the part behind the gap is read, from the end of the range on; then a
 * batch from the beginning of the gap, which must not go as far. Entries in both are behind the gap and are
 * dropped, because they belong to the next range. An entry behind the gap that is only in the second batch has
 * come in between, when its range had been read already: it is seen this once. The part behind may reach into
 * the next gap, when nearly everything was deleted meanwhile. So the last gap is read first, and everything
 * behind a gap has been read by then.
 */

#define NO_END UINT32_MAX /* behind the last bucket */
#define RANGE_BATCH_CAP (1U << 22)
/* Entries read behind a gap, as a multiple of those read of the gap. */
#define BEHIND_TIMES 4

/* Entries that were read, and the bucket behind them. */
struct batch {
	char *keys, *values;
	uint32_t cap, cnt, next;
};

struct sharing {
	const struct map_walk *w;
	const struct map_ranges_options *opts;
	uint32_t begin; /* the first bucket */
	uint32_t range_cnt;
	uint32_t *reached; /* for each range: the first bucket that is not read yet */
	uint32_t taken_cnt; /* atomic: ranges that have a reader */
	pthread_mutex_t lock; /* protects the members below, and fn */
	int err;
};

struct reader {
	struct sharing *s;
	struct batch batch;
	pthread_t thread;
	bool has_thread;
};

static int batch_reserve(struct batch *b, const struct map_walk *w, uint32_t cnt)
{
	char *keys, *values;

	if (cnt <= b->cap)
		return 0;
	keys = realloc(b->keys, cnt * w->key_bytes);
	if (keys)
		b->keys = keys;
	values = realloc(b->values, cnt * w->value_bytes);
	if (values)
		b->values = values;
	if (!keys || !values)
		return -ENOMEM;
	b->cap = cnt;
	return 0;
}

static void batch_release(struct batch *b)
{
	free(b->keys);
	free(b->values);
}

/* Read whole buckets from `from` on, with at most `cap` entries. -ENOSPC: the first bucket has more. */
static int batch_read(struct batch *b, const struct map_walk *w, uint32_t from, uint32_t cap)
{
	int err = batch_reserve(b, w, cap);

	if (err)
		return err;
	b->cnt = cap;
	err = bpf_map_lookup_batch(w->fd, &from, &b->next, b->keys, b->values, &b->cnt, NULL);
	if (err == -ENOENT) {
		b->next = NO_END;
		return 0;
	}
	return err == -ENOSPC && cap >= RANGE_BATCH_CAP ? -E2BIG : err;
}

static bool batch_has(const struct batch *b, const struct map_walk *w, const char *key)
{
	for (uint32_t i = 0; i < b->cnt; i++)
		if (!memcmp(b->keys + i * w->key_bytes, key, w->key_bytes))
			return true;
	return false;
}

/* Call fn with the entries that are not in `but`, which may be NULL. After an error of another reader: return
 * it and call nothing. */
static int deliver_but(struct sharing *s, const struct batch *b, const struct batch *but)
{
	const struct map_walk *w = s->w;
	int err;

	pthread_mutex_lock(&s->lock);
	for (uint32_t i = 0; i < b->cnt && !s->err; i++) {
		const char *key = b->keys + i * w->key_bytes;

		if (!but || !batch_has(but, w, key))
			s->err = w->fn(w->ctx, key, b->values + i * w->value_bytes);
	}
	err = s->err;
	pthread_mutex_unlock(&s->lock);
	return err;
}

static uint32_t range_end(const struct sharing *s, uint32_t range)
{
	return range + 1 < s->range_cnt ? s->begin + (range + 1) * s->opts->range_buckets : NO_END;
}

/* Read as far as possible without going beyond the end. */
static int read_range(struct reader *r, uint32_t range)
{
	uint32_t *reached = &r->s->reached[range], end = range_end(r->s, range);
	uint32_t cap = r->s->opts->batch_cnt;
	bool is_near_end = false;
	int err;

	while (*reached < end) {
		err = batch_read(&r->batch, r->s->w, *reached, cap);
		if (err == -ENOSPC && is_near_end)
			return 0;
		if (err == -ENOSPC) {
			cap *= 2;
		} else if (!err && r->batch.next > end) {
			if (cap <= r->s->opts->gap_cnt)
				return 0;
			is_near_end = true;
			cap = (cap + 3) / 4;
		} else {
			if (!err)
				err = deliver_but(r->s, &r->batch, NULL);
			if (err)
				return err;
			*reached = r->batch.next;
		}
	}
	return 0;
}

static void *read_ranges(void *arg)
{
	struct reader *r = arg;
	struct sharing *s = r->s;
	uint32_t range;
	int err = 0;

	while (!err &&
	       (range = __atomic_fetch_add(&s->taken_cnt, 1, __ATOMIC_RELAXED)) < s->range_cnt)
		err = read_range(r, range);
	if (err) {
		pthread_mutex_lock(&s->lock);
		if (!s->err)
			s->err = err;
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

static int read_gap(struct sharing *s, uint32_t range, struct batch *gap, struct batch *behind)
{
	uint32_t reached = s->reached[range], end = range_end(s, range), cap = s->opts->gap_cnt;
	int err = 0;

	while (!err && reached < end) {
		err = batch_read(behind, s->w, end, cap * BEHIND_TIMES);
		if (!err)
			err = batch_read(gap, s->w, reached, cap);
		if (err == -ENOSPC) {
			cap *= 2;
			err = 0;
		} else if (!err && gap->next <= behind->next) {
			err = deliver_but(s, gap, gap->next > end ? behind : NULL);
			reached = gap->next;
		} /* else most entries behind have just been deleted: it goes further next time */
	}
	return err;
}

static int read_gaps(struct sharing *s, struct batch *gap)
{
	struct batch behind = { 0 };
	int err = 0;

	for (uint32_t range = s->range_cnt; range-- && !err;)
		err = read_gap(s, range, gap, &behind);
	batch_release(&behind);
	return err;
}

static unsigned reader_cnt(const struct sharing *s)
{
	unsigned cnt = s->opts->reader_cap < s->range_cnt ? s->opts->reader_cap : s->range_cnt;
	cpu_set_t cpus;

	/* It fails with more CPUs than fit in cpus. */
	if (!sched_getaffinity(0, sizeof(cpus), &cpus) && (unsigned)CPU_COUNT(&cpus) < cnt)
		cnt = (unsigned)CPU_COUNT(&cpus);
	return cnt ? cnt : 1;
}

/* The caller is the first reader; when threads cannot be made, the others read more. */
static int read_shared(struct sharing *s)
{
	unsigned cnt = reader_cnt(s);
	struct reader *readers = calloc(cnt, sizeof(*readers));
	int err = readers ? 0 : -ENOMEM;

	/* Here and not in the threads: malloc would make an arena for each of them. */
	for (unsigned i = 0; i < cnt && !err; i++) {
		readers[i].s = s;
		err = batch_reserve(&readers[i].batch, s->w, s->opts->batch_cnt);
	}
	if (!err) {
		for (unsigned i = 1; i < cnt; i++)
			readers[i].has_thread =
				!thread_start(&readers[i].thread, read_ranges, &readers[i]);
		read_ranges(&readers[0]);
		for (unsigned i = 1; i < cnt; i++)
			if (readers[i].has_thread)
				pthread_join(readers[i].thread, NULL);
		err = s->err ? s->err : read_gaps(s, &readers[0].batch);
	}
	for (unsigned i = 0; i < cnt && readers; i++)
		batch_release(&readers[i].batch);
	free(readers);
	return err;
}

/* Read all buckets from `begin` on. */
static int read_rest(const struct map_walk *w, const struct map_ranges_options *opts,
		     uint32_t begin, uint32_t bucket_cnt)
{
	struct sharing s = {
		.w = w,
		.opts = opts,
		.begin = begin,
		.range_cnt = (bucket_cnt - begin - 1) / opts->range_buckets + 1,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	int err;

	s.reached = malloc(s.range_cnt * sizeof(*s.reached));
	if (!s.reached)
		return -ENOMEM;
	for (uint32_t i = 0; i < s.range_cnt; i++)
		s.reached[i] = begin + i * opts->range_buckets;
	err = read_shared(&s);
	free(s.reached);
	return err;
}

int map_ranges_walk(const struct map_walk *w, const struct map_ranges_options *opts)
{
	struct map_cursor c = { 0 };
	uint64_t bucket_cnt = 1;
	uint32_t at = 0;
	int err = 0;

	while (bucket_cnt < opts->entries_cap)
		bucket_cnt *= 2;
	/* Keys are spread evenly: the first batch tells how many there are. */
	while (!c.read_cnt && !c.at_end && !err)
		err = map_cursor_next(&c, w);
	memcpy(&at, c.position, sizeof(at));
	if (!err && !c.at_end && at && at < bucket_cnt &&
	    bucket_cnt * c.read_cnt / at >= opts->shared_least)
		err = read_rest(w, opts, at, (uint32_t)bucket_cnt);
	else
		while (!c.at_end && !err)
			err = map_cursor_next(&c, w);
	map_cursor_release(&c);
	return err;
}
