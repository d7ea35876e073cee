/* SPDX-License-Identifier: MIT */
/* engine_read.c - reading the maps back. See engine.h. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "kernel/engine_priv.h"
#include "kernel/map_walk.h"

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

/* A walk of less than 30 ms is not worth threads. */
#define LIVE_SHARED_LEAST 100000
#define LIVE_READER_CAP 4
/* Several ranges for each reader of a map that is large enough, so that all end at about the same time. */
#define LIVE_RANGE_BUCKETS (1 << 16)
/* A batch, and the data made from it, stay in a CPU's own cache. */
#define LIVE_BATCH_CNT 1024
#define LIVE_GAP_CNT 64

/* false: `live` is empty. The map has a million buckets: finding that out there takes 3 ms. */
static bool may_live(struct engine *e)
{
	const uint32_t *slots = e->skel->bss->live_filter;
	uint32_t any = 0;

	for (size_t i = 0; i < HT_FILTER_CNT; i++)
		any |= slots[i];
	return any;
}

int engine_each_live(struct engine *e, engine_live_fn fn, void *ctx)
{
	struct live_walk lw = { fn, ctx };
	struct map_walk w = { bpf_map__fd(e->skel->maps.live), sizeof(struct ht_live_key),
			      sizeof(struct ht_live), on_live, &lw };
	const struct map_ranges_options opts = {
		.entries_cap = bpf_map__max_entries(e->skel->maps.live),
		.shared_least = LIVE_SHARED_LEAST,
		.reader_cap = LIVE_READER_CAP,
		.range_buckets = LIVE_RANGE_BUCKETS,
		.batch_cnt = LIVE_BATCH_CNT,
		.gap_cnt = LIVE_GAP_CNT,
	};

	if (!may_live(e))
		return 0;
	return map_ranges_walk(&w, &opts);
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

	return map_walk_all(&w);
}

struct bin_walk {
	engine_bin_fn fn;
	void *ctx;
};

static int on_bin(void *ctx, const void *key, const void *value)
{
	const struct bin_walk *w = ctx;

	return w->fn(w->ctx, key, value);
}

int engine_each_bin(struct engine *e, engine_bin_fn fn, void *ctx)
{
	struct bin_walk bw = { fn, ctx };
	struct map_walk w = { bpf_map__fd(e->skel->maps.bins), sizeof(struct ht_bin_key),
			      sizeof(struct ht_bin), on_bin, &bw };

	return map_walk_all(&w);
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

	return map_walk_all(&w);
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

	return map_walk_all(&w);
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
