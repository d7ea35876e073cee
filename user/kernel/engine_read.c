/* SPDX-License-Identifier: MIT */
/* engine_read.c - reading the maps back. See engine.h. */
#include <bpf/bpf.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernel/engine_priv.h"
#include "kernel/map_walk.h"
#include "profile/estimate.h"

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

static int note_over(void *ctx, const struct ht_image_key *k, const struct ht_image *v)
{
	struct engine_peak *p = ctx;
	uint64_t image = (uint64_t)k->tgid << 32 | k->generation;

	return v->over_peak ? hmap_put(&p->over, &image, v->over_peak) : 0;
}

int engine_peak_begin(struct engine *e, struct engine_peak *p, bool *ret_is_known)
{
	const struct ht_peak *peak = &e->skel->bss->ht_peak;

	hmap_init(&p->over, sizeof(uint64_t));
	p->time_ns = peak->time_ns;
	p->number = __atomic_load_n(&peak->number, __ATOMIC_ACQUIRE);
	*ret_is_known = e->skel->rodata->ht_keeps_peak && p->number && peak->bytes_8 > 0;
	return *ret_is_known ? engine_each_image(e, note_over, p) : 0;
}

/* Losses, and other CPUs at the same time, may have taken out what was not added. */
static double at_least_0(int64_t sum, double unit)
{
	return sum > 0 ? (double)sum / unit : 0;
}

void engine_peak_of(const struct engine *e, const struct engine_peak *p, uint64_t image,
		    const struct ht_total *total, struct estimate *ret)
{
	const uint64_t *over = hmap_get(&p->over, &image);
	const struct ht_held *h = &total->held;
	double variance;

	*ret = (struct estimate){ 0 };
	if (total->peak_number == p->number)
		h = &total->at_peak;
	else if (over && *over < p->number) /* it was over when the peak came */
		return;
	if (h->samples <= 0)
		return;
	variance = engine_variance(e, &h->variance);
	ret->samples = (uint64_t)h->samples;
	ret->bytes = at_least_0(h->bytes_8, 256);
	ret->objects = at_least_0(h->objects_16, 65536);
	/* a sum that was torn is larger than any: its bytes are all that is known */
	ret->bytes_variance = fmin(variance, ret->bytes * ret->bytes);
}

void engine_peak_end(struct engine_peak *p)
{
	hmap_release(&p->over);
}

int engine_get_stack(struct engine *e, uint64_t stack_id, struct ht_stack *ret)
{
	if (bpf_map_lookup_elem(bpf_map__fd(e->skel->maps.stacks), &stack_id, ret))
		return -errno;
	if (ret->frame_cnt > HT_FRAMES_CAP)
		ret->frame_cnt = HT_FRAMES_CAP;
	return 0;
}
