/* SPDX-License-Identifier: MIT */
/* engine_read.c - reading the maps back: hits, samples, sums. See engine.h. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "kernel/engine_priv.h"
#include "kernel/map_walk.h"
#include "profile/estimate.h"

/*
 * Hits per target, and removal of samples whose frees cannot be seen.
 *
 * Each target counts its hits in its own slot of a per-CPU array. Slots are never reset: their sum over all
 * slots ever given out is the total number of hits, and a new owner subtracts the starting value.
 */

uint32_t engine_hits_take(struct engine *e)
{
	if (e->hits.unused.cnt)
		return e->hits.unused.data[--e->hits.unused.cnt];
	return e->hits.next < e->hits.cap ? e->hits.next++ : 0;
}

void engine_hits_give(struct engine *e, uint32_t idx)
{
	if (idx) /* without memory the slot is lost, nothing else */
		(void)vec_push(&e->hits.unused, idx);
}

/* Allocate once, not for each read: there are many reads, and where the C library is probed in all processes,
 * each allocation costs this program some microseconds as well. */
static int make_room(struct engine *e)
{
	int cpu_cnt = libbpf_num_possible_cpus();

	if (e->hits.per_cpu)
		return 0;
	if (cpu_cnt < 0)
		return cpu_cnt;
	e->hits.per_cpu = calloc(cpu_cnt, sizeof(*e->hits.per_cpu));
	e->hits.cpu_cnt = cpu_cnt;
	return e->hits.per_cpu ? 0 : -ENOMEM;
}

static int read_hits(struct engine *e, uint32_t idx, struct ht_hits *ret)
{
	const struct ht_hits *per_cpu = e->hits.per_cpu;

	if (bpf_map_lookup_elem(bpf_map__fd(e->skel->maps.hits), &idx, e->hits.per_cpu))
		return -errno;
	for (int cpu = 0; cpu < e->hits.cpu_cnt; cpu++) {
		ret->alloc_cnt += per_cpu[cpu].alloc_cnt;
		ret->free_cnt += per_cpu[cpu].free_cnt;
		ret->return_cnt += per_cpu[cpu].return_cnt;
		ret->stepped_cnt += per_cpu[cpu].stepped_cnt;
		ret->sample_cnt += per_cpu[cpu].sample_cnt;
		ret->stack_ns += per_cpu[cpu].stack_ns;
		if (per_cpu[cpu].sampler_rate_bytes > ret->sampler_rate_bytes)
			ret->sampler_rate_bytes = per_cpu[cpu].sampler_rate_bytes;
	}
	return 0;
}

/* Sum the slots [first, end). */
static int sum_hits(struct engine *e, uint32_t first, uint32_t end, struct ht_hits *ret)
{
	int err = make_room(e);

	*ret = (struct ht_hits){ 0 };
	for (uint32_t idx = first; idx < end && !err; idx++)
		err = read_hits(e, idx, ret);
	return err;
}

void engine_hits_release(struct engine *e)
{
	free(e->hits.per_cpu);
	e->hits.per_cpu = NULL;
}

int engine_read_hits(struct engine *e, uint32_t idx, struct ht_hits *ret)
{
	return sum_hits(e, idx, idx + 1, ret);
}

/* Adds the hits of all targets to HT_STAT_HITS_*. */
static int engine_add_hits(struct engine *e, uint64_t stats[HT_STAT_CNT])
{
	struct ht_hits sum;
	int err = sum_hits(e, 0, e->hits.next, &sum);

	if (err)
		return err;
	stats[HT_STAT_HITS_ALLOC] += sum.alloc_cnt;
	stats[HT_STAT_HITS_FREE] += sum.free_cnt;
	stats[HT_STAT_HITS_RETURN] += sum.return_cnt;
	stats[HT_STAT_HITS_STEPPED] += sum.stepped_cnt;
	return 0;
}

#define MEASURED_HITS_MIN 200

static int sum_stack_ns(struct engine *e, uint64_t *ret_ns)
{
	struct ht_hits sum;
	int err = sum_hits(e, 0, e->hits.next, &sum);

	*ret_ns = err ? 0 : sum.stack_ns;
	return err;
}

/* The kernel counts runs and their time only while measuring is on. */
static int read_runs(struct engine *e, struct engine_runs *ret)
{
	const int fds[] = { engine_loaded_fd(e, ENGINE_ALLOC), engine_loaded_fd(e, ENGINE_FREE) };
	int err = sum_stack_ns(e, &ret->stack_ns);

	ret->cnt = ret->ns = 0;
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds) && !err; i++) {
		struct bpf_prog_info info = { 0 };
		uint32_t bytes = sizeof(info);

		if (fds[i] >= 0 && bpf_obj_get_info_by_fd(fds[i], &info, &bytes))
			err = -errno;
		ret->cnt += info.run_cnt;
		ret->ns += info.run_time_ns;
	}
	return err;
}

int engine_measure_hits(struct engine *e, bool on)
{
	if (e->hits.stats_fd >= 0) {
		close(e->hits.stats_fd);
		e->hits.stats_fd = -1;
	}
	if (!on)
		return 0;
	e->hits.stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (e->hits.stats_fd < 0)
		return -ENOTSUP;
	return read_runs(e, &e->hits.runs);
}

int engine_hit_ns(struct engine *e, double *ret_ns)
{
	const struct engine_runs from = e->hits.runs;
	struct engine_runs to;
	uint64_t cnt, run_ns, stack_ns;
	int err = read_runs(e, &to);

	if (err)
		return err;
	cnt = to.cnt - from.cnt;
	run_ns = to.ns - from.ns;
	stack_ns = to.stack_ns - from.stack_ns;
	if (cnt < MEASURED_HITS_MIN)
		return -EAGAIN;
	e->hits.runs = to;
	*ret_ns = run_ns > stack_ns ? (double)(run_ns - stack_ns) / (double)cnt : 0;
	return 0;
}

struct drop {
	struct engine *e;
	pid_t tgid;
	uint32_t generation;
	size_t cnt; /* samples taken out */
};

/* BPF takes the sample out, so that a free at the same time is counted by one of the two. */
static int drop_if_of(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct drop *d = ctx;
	uint64_t args[3] = { k->tgid, k->generation, k->addr };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	(void)v;
	if (k->tgid != (uint32_t)d->tgid || k->generation != d->generation)
		return 0;
	if (bpf_prog_test_run_opts(bpf_program__fd(d->e->skel->progs.ht_drop_block), &opts))
		return -errno;
	d->cnt += !opts.retval;
	return 0;
}

/* What was dropped is in no sum any more, so it must not be in the peak: the peak begins anew. */
static void restart_peak(struct engine *e)
{
	struct ht_peak *peak = &e->skel->bss->ht_peak;

	peak->bytes_8 = peak->held_bytes_8;
	peak->time_ns = now_ns();
	__atomic_fetch_add(&peak->number, 1, __ATOMIC_SEQ_CST);
}

int engine_drop_live(struct engine *e, pid_t tgid, uint32_t generation, size_t *ret_cnt)
{
	struct drop d = { e, tgid, generation, 0 };
	int err = engine_each_live(e, drop_if_of, &d);

	if (d.cnt && e->skel->rodata->ht_keeps_peak)
		restart_peak(e);
	if (ret_cnt)
		*ret_cnt = d.cnt;
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

/*
 * Threads of a process, asked of the kernel by an iterator.
 */

static int read_flags(int fd, uint32_t *ret_flags)
{
	uint8_t flags[4096];
	ssize_t n;

	*ret_flags = 0;
	while ((n = read(fd, flags, sizeof(flags))) > 0)
		for (ssize_t i = 0; i < n; i++)
			*ret_flags |= flags[i];
	return n < 0 ? -errno : 0;
}

/* Before 6.1 an iterator goes over all processes of the machine: such a kernel refuses the longer `info`. */
int engine_ask_threads(const struct engine *e, pid_t pid, uint32_t *ret_flags)
{
	union bpf_iter_link_info info = { .task.pid = (uint32_t)pid };
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = &info, .iter_info_len = sizeof(info));
	int link = bpf_link_create(bpf_program__fd(e->skel->progs.ht_threads), 0, BPF_TRACE_ITER,
				   &opts);
	int fd = link < 0 ? link : bpf_iter_create(link), err;

	err = fd < 0 ? fd : read_flags(fd, ret_flags);
	if (fd >= 0)
		close(fd);
	if (link >= 0)
		close(link);
	if (!err || err == -ESRCH)
		return err;
	*ret_flags = HT_THREAD_DISPATCHES | HT_THREAD_MAY_NOT_RESTART; /* not asked: the worst */
	return err == -E2BIG ? -ENOTSUP : err;
}
