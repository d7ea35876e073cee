/* SPDX-License-Identifier: MIT */
/*
 * engine_hits.c - hits per target, and removal of samples whose frees cannot be seen. See engine.h.
 *
 * Each target counts its hits in its own slot of a per-CPU array. Slots are never reset: their sum over all
 * slots ever given out is the total number of hits, and a new owner subtracts the starting value.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "kernel/engine_priv.h"

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

int engine_add_hits(struct engine *e, uint64_t stats[HT_STAT_CNT])
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
	const int fds[] = { engine_prog_fd(e, ENGINE_ALLOC), engine_prog_fd(e, ENGINE_FREE) };
	int err = sum_stack_ns(e, &ret->stack_ns);

	ret->cnt = ret->ns = 0;
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds) && !err; i++) {
		struct bpf_prog_info info = { 0 };
		uint32_t bytes = sizeof(info);

		if (bpf_obj_get_info_by_fd(fds[i], &info, &bytes))
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
static int on_live(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
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
	int err = engine_each_live(e, on_live, &d);

	if (d.cnt && e->skel->rodata->ht_keeps_peak)
		restart_peak(e);
	if (ret_cnt)
		*ret_cnt = d.cnt;
	return err;
}
