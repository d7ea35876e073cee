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

#include "kernel/engine_priv.h"

#define BATCH_CNT 4096
#define BATCH_CAP (1 << 20)

struct map_walk {
	int fd;
	size_t key_bytes, value_bytes;
	int (*fn)(void *ctx, const void *key, const void *value);
	void *ctx;
};

static int deliver(const struct map_walk *w, const char *keys, const char *values, uint32_t cnt)
{
	int err = 0;

	for (uint32_t i = 0; i < cnt && !err; i++)
		err = w->fn(w->ctx, keys + i * w->key_bytes, values + i * w->value_bytes);
	return err;
}

static int walk_map(const struct map_walk *w)
{
	/* The kernel's position: the index of a bucket, opaque to us. */
	uint64_t position[8] = { 0 };
	uint32_t batch_cnt = BATCH_CNT;
	char *keys = NULL, *values = NULL;
	bool is_first = true, at_end = false;
	int err = 0;

	while (!at_end && !err) {
		uint32_t cnt = batch_cnt;

		if (!keys) {
			keys = malloc(w->key_bytes * batch_cnt);
			values = malloc(w->value_bytes * batch_cnt);
			if (!keys || !values) {
				err = -ENOMEM;
				break;
			}
		}
		err = bpf_map_lookup_batch(w->fd, is_first ? NULL : position, position, keys,
					   values, &cnt, NULL);
		if (err == -ENOSPC && batch_cnt < BATCH_CAP) {
			free(keys);
			free(values);
			keys = values = NULL;
			batch_cnt *= 4;
			err = 0;
			continue;
		}
		at_end = err == -ENOENT;
		if (err && !at_end)
			break;
		is_first = false;
		err = deliver(w, keys, values, cnt);
	}
	free(keys);
	free(values);
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
	return err;
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

	return walk_map(&w);
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

	return walk_map(&w);
}

struct context_walk {
	engine_context_fn fn;
	void *ctx;
};

static int on_context(void *ctx, const void *key, const void *value)
{
	const struct context_walk *w = ctx;

	return w->fn(w->ctx, key, *(const uint32_t *)value);
}

int engine_each_context(struct engine *e, engine_context_fn fn, void *ctx)
{
	struct context_walk cw = { fn, ctx };
	struct map_walk w = { bpf_map__fd(e->skel->maps.contexts), sizeof(struct ht_context),
			      sizeof(uint32_t), on_context, &cw };

	return walk_map(&w);
}

int engine_get_stack(struct engine *e, uint64_t stack_id, struct ht_stack *ret)
{
	if (bpf_map_lookup_elem(bpf_map__fd(e->skel->maps.stacks), &stack_id, ret))
		return -errno;
	if (ret->frame_cnt > HT_FRAMES_CAP)
		ret->frame_cnt = HT_FRAMES_CAP;
	return 0;
}
