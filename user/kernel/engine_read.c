/* SPDX-License-Identifier: MIT */
/*
 * engine_read.c - reading the maps back.
 *
 * A walk in batches is not a moment in time: entries that come and go meanwhile may or may not
 * be seen, those that stay are seen once. With -ENOSPC (a bucket longer than the batch) the batch
 * is enlarged and the walk goes on where it was.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/engine_priv.h"

/* What one batch may take of our memory, and how it grows at need. */
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
	return deliver(w, c->keys, c->values, cnt);
}

int engine_walk_map(const struct map_walk *w)
{
	struct map_cursor c = { 0 };
	int err = 0;

	while (!c.at_end && !err)
		err = map_cursor_next(&c, w);
	map_cursor_release(&c);
	return err;
}

int engine_read_stats(struct engine *e, uint64_t ret[HT_STAT_CNT])
{
	int cpu_cnt = libbpf_num_possible_cpus();
	uint64_t(*per_cpu)[HT_STAT_CNT];
	uint32_t zero = 0;
	int err = 0;

	if (cpu_cnt < 0)
		return cpu_cnt;
	per_cpu = calloc(cpu_cnt, sizeof(*per_cpu));
	if (!per_cpu)
		return -ENOMEM;
	if (bpf_map_lookup_elem(bpf_map__fd(e->skel->maps.stats), &zero, per_cpu))
		err = -errno;
	for (int id = 0; id < HT_STAT_CNT && !err; id++) {
		ret[id] = 0;
		for (int cpu = 0; cpu < cpu_cnt; cpu++)
			ret[id] += per_cpu[cpu][id];
	}
	free(per_cpu);
	return err ? err : engine_add_hits(e, ret);
}

struct live_walk {
	engine_live_fn fn;
	void *ctx;
};

static int on_live(void *ctx, const void *key, const void *value)
{
	const struct live_walk *w = ctx;

	return w->fn(w->ctx, key, value);
}

int engine_each_live(struct engine *e, engine_live_fn fn, void *ctx)
{
	struct live_walk lw = { fn, ctx };
	struct map_walk w = { bpf_map__fd(e->skel->maps.live), sizeof(struct ht_live_key),
			      sizeof(struct ht_live), on_live, &lw };

	return engine_walk_map(&w);
}

struct total_walk {
	engine_total_fn fn;
	void *ctx;
};

static int on_total(void *ctx, const void *key, const void *value)
{
	const struct total_walk *w = ctx;

	return w->fn(w->ctx, key, value);
}

int engine_each_total(struct engine *e, engine_total_fn fn, void *ctx)
{
	struct total_walk tw = { fn, ctx };
	struct map_walk w = { bpf_map__fd(e->skel->maps.totals), sizeof(struct ht_total_key),
			      sizeof(struct ht_total), on_total, &tw };

	return engine_walk_map(&w);
}

struct context_walk {
	engine_context_fn fn;
	void *ctx;
};

static int on_context(void *ctx, const void *key, const void *value)
{
	const struct context_walk *w = ctx;

	return w->fn(w->ctx, key, value);
}

int engine_each_context(struct engine *e, engine_context_fn fn, void *ctx)
{
	struct context_walk cw = { fn, ctx };
	struct map_walk w = { bpf_map__fd(e->skel->maps.contexts), sizeof(struct ht_context),
			      sizeof(struct ht_context_value), on_context, &cw };

	return engine_walk_map(&w);
}

struct image_walk {
	engine_image_fn fn;
	void *ctx;
};

static int on_image(void *ctx, const void *key, const void *value)
{
	const struct image_walk *w = ctx;

	return w->fn(w->ctx, key, value);
}

int engine_each_image(struct engine *e, engine_image_fn fn, void *ctx)
{
	struct image_walk iw = { fn, ctx };
	struct map_walk w = { bpf_map__fd(e->skel->maps.images), sizeof(struct ht_image_key),
			      sizeof(struct ht_image), on_image, &iw };

	return engine_walk_map(&w);
}

int engine_get_image(struct engine *e, pid_t tgid, uint32_t generation, struct ht_image *ret)
{
	const struct ht_image_key key = { (uint32_t)tgid, generation };

	return bpf_map_lookup_elem(bpf_map__fd(e->skel->maps.images), &key, ret) ? -errno : 0;
}

int engine_get_stack(struct engine *e, uint64_t stack_id, struct ht_stack *ret)
{
	if (bpf_map_lookup_elem(bpf_map__fd(e->skel->maps.stacks), &stack_id, ret))
		return -errno;
	if (ret->frame_cnt > HT_FRAMES_CAP)
		ret->frame_cnt = HT_FRAMES_CAP;
	return 0;
}
