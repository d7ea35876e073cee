/* SPDX-License-Identifier: MIT */
/*
 * engine.c - see engine.h. Life cycle, targets, rates, counters, events; reading the maps back is
 * engine_read.c, unwind tables are engine_tables.c, tags are engine_tags.c.
 */
#include "kernel/engine.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/err.h"
#include "kernel/engine_priv.h"
#include "kernel/features.h"
#include "kernel/uapi.h"
#include "profile/estimate.h"

/* libbpf reports through a callback; the last warning is usually the reason of a failure. */
struct last_warning {
	bool is_verbose;
	char text[256];
};
static _Thread_local struct last_warning last_warning;

static int on_libbpf_print(enum libbpf_print_level level, const char *fmt, va_list args)
{
	/* Its debugging output is thousands of lines about the loading of the object. */
	if (last_warning.is_verbose && level != LIBBPF_DEBUG)
		return vfprintf(stderr, fmt, args);
	if (level == LIBBPF_WARN && !last_warning.text[0])
		vsnprintf(last_warning.text, sizeof(last_warning.text), fmt, args);
	return 0;
}

static int on_ring_record(void *ctx, void *data, size_t bytes)
{
	struct engine *e = ctx;

	if (bytes >= sizeof(struct ht_event) && e->ops.on_event)
		e->ops.on_event(e->ops_ctx, data);
	return 0;
}

static enum bpf_attach_type entry_type(enum attach_mode mode)
{
	return mode == ATTACH_SESSION || mode == ATTACH_MULTI ? UAPI_TRACE_UPROBE_MULTI : 0;
}

/*
 * Groups of programs. The kernel's check of the programs is half of the CPU time of a start, so a group that is not
 * needed at once is loaded when one of it is asked for: that of samplers and taps, which few processes have, or that of
 * probes, if there is one process, and it is tapped.
 */

enum group { GROUP_CALLS, GROUP_EVENTS, GROUP_SAMPLED, GROUP_ALWAYS };

static enum group group_of(enum engine_prog prog)
{
	if (prog <= ENGINE_FREE)
		return GROUP_CALLS;
	if (prog <= ENGINE_EVENT_FREE_PTR)
		return GROUP_EVENTS;
	return prog == ENGINE_SAMPLED ? GROUP_SAMPLED : GROUP_ALWAYS;
}

/* NULL: this mode has no such program. */
static struct bpf_program *program_of(const struct heaptap_bpf *skel, enum attach_mode mode,
				      enum engine_prog prog)
{
	const bool is_session = mode == ATTACH_SESSION, is_perf = mode == ATTACH_PERF;

	switch (prog) {
	case ENGINE_ALLOC:
		return is_session ? skel->progs.ht_alloc_session : skel->progs.ht_alloc_entry;
	case ENGINE_ALLOC_RETURN:
		return is_session ? NULL : skel->progs.ht_alloc_return;
	case ENGINE_FREE:
		return skel->progs.ht_free;
	case ENGINE_EVENT_ALLOC:
		return is_perf ? NULL : skel->progs.ht_event_entry;
	case ENGINE_EVENT_ALLOC_RETURN:
		return is_perf ? NULL : skel->progs.ht_event_return;
	case ENGINE_EVENT_FREE:
		return is_perf ? NULL : skel->progs.ht_event_free;
	case ENGINE_EVENT_MALLOC:
		return skel->progs.ht_event_malloc;
	case ENGINE_EVENT_FREE_PTR:
		return skel->progs.ht_event_free_ptr;
	case ENGINE_SAMPLED:
		return skel->progs.ht_sampled;
	case ENGINE_TAG_READY:
		return skel->progs.ht_tag_ready;
	case ENGINE_TASK_EXIT:
		return skel->progs.ht_task_exit;
	case ENGINE_LOADED:
		return skel->progs.ht_loaded;
	}
	return NULL;
}

static int choose_group(struct heaptap_bpf *skel, enum attach_mode mode, enum group group)
{
	struct bpf_program *prog;

	for (int i = 0; i < ENGINE_LATE_CNT; i++) {
		enum bpf_attach_type type = group == GROUP_EVENTS ? 0 : entry_type(mode);
		int err;

		prog = group_of(i) == group ? program_of(skel, mode, i) : NULL;
		if (!prog)
			continue;
		if (prog == skel->progs.ht_alloc_session)
			type = UAPI_TRACE_UPROBE_SESSION;
		bpf_program__set_autoload(prog, true);
		err = bpf_program__set_expected_attach_type(prog, type);
		if (err)
			return err;
	}
	return 0;
}

/* Load only the programs that this mode attaches: others may not exist on this kernel. */
static int choose_programs(struct heaptap_bpf *skel, const struct engine_options *opts)
{
	const enum bpf_attach_type entry = entry_type(opts->mode);
	struct bpf_program *const grouped[] = {
		skel->progs.ht_alloc_session,  skel->progs.ht_alloc_entry,
		skel->progs.ht_alloc_return,   skel->progs.ht_free,
		skel->progs.ht_event_entry,    skel->progs.ht_event_return,
		skel->progs.ht_event_free,     skel->progs.ht_event_malloc,
		skel->progs.ht_event_free_ptr, skel->progs.ht_sampled,
	};
	int err;

	for (size_t i = 0; i < sizeof(grouped) / sizeof(*grouped); i++)
		bpf_program__set_autoload(grouped[i], false);
	bpf_program__set_autoload(skel->progs.ht_empty, false);
	bpf_program__set_autoload(skel->progs.ht_loaded, opts->holds);
	err = bpf_program__set_expected_attach_type(skel->progs.ht_tag_ready, entry);
	if (!err)
		err = bpf_program__set_expected_attach_type(skel->progs.ht_task_exit, entry);
	if (!err)
		err = bpf_program__set_expected_attach_type(skel->progs.ht_loaded, entry);
	if (!err)
		err = choose_group(skel, opts->mode, opts->is_tapped ? GROUP_SAMPLED : GROUP_CALLS);
	if (!err && opts->has_events)
		err = choose_group(skel, opts->mode, GROUP_EVENTS);
	return err;
}

static int size_maps(struct heaptap_bpf *skel, const struct engine_options *opts)
{
	/* Preempted walks keep their scratch space: eight at once per CPU. */
	uint32_t scratch_cnt = libbpf_num_possible_cpus() * 8;
	int err = bpf_map__set_max_entries(skel->maps.live, opts->live_cap);

	skel->rodata->ht_scratch_cnt = scratch_cnt;
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.scratch, scratch_cnt);

	if (!err)
		err = bpf_map__set_max_entries(skel->maps.stacks, opts->stack_cap);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.totals,
					       opts->stack_cap * ENGINE_TOTALS_PER_STACK);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.bins,
					       opts->stack_cap * ENGINE_BINS_PER_STACK);
	if (!err && opts->only_tgid)
		err = bpf_map__set_max_entries(skel->maps.hits, 1);
	return err;
}

/* Not called for a single process, which has the tables to itself. */
static void share_out(struct heaptap_bpf *skel, const struct engine_options *opts)
{
	skel->rodata->ht_share_cap[HT_SHARED_LIVE] = opts->live_cap;
	skel->rodata->ht_share_cap[HT_SHARED_TOTALS] = opts->stack_cap * ENGINE_TOTALS_PER_STACK;
	skel->rodata->ht_share_cap[HT_SHARED_BINS] = opts->stack_cap * ENGINE_BINS_PER_STACK;
	skel->rodata->ht_share_cap[HT_SHARED_STACKS] = opts->stack_cap;
	skel->rodata->ht_share_cap[HT_SHARED_CONTEXTS] = HT_CONTEXTS_CAP;
	skel->rodata->ht_share_cap[HT_SHARED_SCOPES] = HT_SCOPES_CAP;
	skel->rodata->ht_share_cap[HT_SHARED_LABELS] = HT_LABEL_SETS_CAP;
	skel->rodata->ht_share_cap[HT_SHARED_INSTANCES] = HT_INSTANCES_CAP;
}

static int load(struct engine *e, const struct engine_options *opts,
		const struct kernel_features *features)
{
	int err;

	e->skel = heaptap_bpf__open();
	if (!e->skel)
		return -errno;
	e->skel->rodata->ht_use_find_vma = features->find_vma;
	e->skel->rodata->ht_only_tgid = opts->only_tgid;
	e->skel->rodata->ht_only_hits = opts->only_tgid && opts->mode == ATTACH_SESSION;
	e->skel->rodata->ht_sum_images = opts->keeps_peak || !opts->only_tgid;
	e->skel->rodata->ht_keeps_peak = opts->keeps_peak;
	e->skel->rodata->ht_realloc_keeps_scope = opts->realloc_keeps_scope;
	if (!opts->only_tgid)
		share_out(e->skel, opts);
	err = choose_programs(e->skel, opts);
	if (!err)
		err = size_maps(e->skel, opts);
	if (!err)
		err = heaptap_bpf__load(e->skel);
	return err;
}

/* Streams of random numbers: see bpf/sample.bpf.h. */
static int seed_draws(struct engine *e)
{
	ssize_t n = getrandom(e->skel->bss->ht_draws, sizeof(e->skel->bss->ht_draws), 0);

	if (n < 0)
		return -errno;
	return (size_t)n == sizeof(e->skel->bss->ht_draws) ? 0 : -EIO;
}

static int attach_lifecycle(struct engine *e)
{
	struct bpf_program *prog[] = { e->skel->progs.ht_exec, e->skel->progs.ht_exit,
				       e->skel->progs.ht_fork };

	for (size_t i = 0; i < 3; i++) {
		e->lifecycle[i] = bpf_program__attach(prog[i]);
		if (!e->lifecycle[i])
			return -errno;
	}
	return 0;
}

static void explain(int err, const char *step, struct err *why)
{
	char *nl = strchr(last_warning.text, '\n');

	if (nl)
		*nl = '\0';
	err_set(why, err, "%s: %s%s%s%s%s", step, strerror(-err), last_warning.text[0] ? " (" : "",
		last_warning.text, last_warning.text[0] ? ")" : "",
		err == -EPERM || err == -EACCES ?
			"; needs root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE" :
			"");
}

int engine_open(const struct engine_options *opts, const struct kernel_features *features,
		const struct engine_ops *ops, void *ctx, struct engine **ret, struct err *why)
{
	const char *step = "loading the BPF object";
	struct engine *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		return -ENOMEM;
	e->mode = opts->mode;
	e->only_tgid = opts->only_tgid;
	e->ops = *ops;
	e->ops_ctx = ctx;
	e->hits.next = 1;
	e->hits.stats_fd = -1;
	for (int i = 0; i < ENGINE_LATE_CNT; i++)
		e->late_fd[i] = -1;
	e->hits.cap = opts->only_tgid ? 1 : HT_HITS_CAP;
	last_warning = (struct last_warning){ .is_verbose = opts->is_verbose };
	libbpf_set_print(on_libbpf_print);

	err = engine_tables_init(e);
	if (!err)
		err = load(e, opts, features);
	if (!err)
		err = seed_draws(e);
	if (err)
		goto out;
	step = "attaching to exec, exit and fork";
	err = attach_lifecycle(e);
	if (err)
		goto out;
	step = "opening the event ring";
	e->ring = ring_buffer__new(bpf_map__fd(e->skel->maps.events), on_ring_record, e, NULL);
	if (!e->ring) {
		err = -errno;
		goto out;
	}
	*ret = e;
	e = NULL;
out:
	if (err) /* before what is closed warns, too */
		explain(err, step, why);
	engine_close(e);
	return err;
}

void engine_close(struct engine *e)
{
	if (!e)
		return;
	ring_buffer__free(e->ring);
	for (size_t i = 0; i < 3; i++)
		bpf_link__destroy(e->lifecycle[i]);
	engine_tables_release(e);
	engine_measure_hits(e, false);
	vec_release(&e->hits.unused);
	engine_hits_release(e);
	for (int i = 0; i < ENGINE_LATE_CNT; i++)
		if (e->late_fd[i] >= 0)
			close(e->late_fd[i]);
	heaptap_bpf__destroy(e->skel);
	vec_release(&e->sampled_sites);
	free(e);
}

int engine_events_fd(const struct engine *e)
{
	return ring_buffer__epoll_fd(e->ring);
}

int engine_events_drain(struct engine *e)
{
	int n = ring_buffer__consume(e->ring);

	return n < 0 ? n : 0;
}

enum attach_mode engine_mode(const struct engine *e)
{
	return e->mode;
}

/* As a second object over the maps of the first one. */
static int load_group(struct engine *e, enum group group)
{
	struct heaptap_bpf *skel = heaptap_bpf__open();
	struct bpf_program *prog;
	struct bpf_map *map;
	int err = 0;

	if (!skel)
		return -errno;
	bpf_object__for_each_program(prog, skel->obj) bpf_program__set_autoload(prog, false);
	err = choose_group(skel, e->mode, group);
	bpf_object__for_each_map(map, skel->obj)
	{
		const struct bpf_map *first =
			bpf_object__find_map_by_name(e->skel->obj, bpf_map__name(map));

		if (!err)
			err = first ? bpf_map__reuse_fd(map, bpf_map__fd(first)) : -ENOENT;
	}
	if (!err)
		err = bpf_object__load(skel->obj);
	for (int i = 0; i < ENGINE_LATE_CNT && !err; i++) {
		prog = group_of(i) == group ? program_of(skel, e->mode, i) : NULL;
		if (prog)
			e->late_fd[i] = fcntl(bpf_program__fd(prog), F_DUPFD_CLOEXEC, 0);
		if (prog && e->late_fd[i] < 0)
			err = -errno;
	}
	heaptap_bpf__destroy(skel);
	return err;
}

int engine_loaded_fd(const struct engine *e, enum engine_prog prog)
{
	const struct bpf_program *first = program_of(e->skel, e->mode, prog);
	int fd = first ? bpf_program__fd(first) : -1;

	return fd < 0 && prog < ENGINE_LATE_CNT ? e->late_fd[prog] : fd;
}

int engine_prog_fd(struct engine *e, enum engine_prog prog)
{
	int fd, err;

	/* In perf mode the plain programs are of that kind. */
	if (e->mode == ATTACH_PERF && prog >= ENGINE_EVENT_ALLOC && prog <= ENGINE_EVENT_FREE)
		prog -= ENGINE_EVENT_ALLOC - ENGINE_ALLOC;
	fd = engine_loaded_fd(e, prog);
	if (fd >= 0 || group_of(prog) == GROUP_ALWAYS || !program_of(e->skel, e->mode, prog))
		return fd;
	err = load_group(e, group_of(prog));
	return err ? err : e->late_fd[prog];
}

int engine_sampled_site(struct engine *e, const struct ht_sampled_site *site, uint32_t *ret_idx)
{
	uint32_t idx = 0;
	int err;

	while (idx < e->sampled_sites.cnt &&
	       memcmp(&e->sampled_sites.data[idx], site, sizeof(*site)) != 0)
		idx++;
	*ret_idx = idx;
	if (idx < e->sampled_sites.cnt)
		return 0;
	if (idx >= HT_SAMPLED_SITES_CAP)
		return -ENOSPC;
	err = vec_reserve(&e->sampled_sites, idx + 1);
	if (!err &&
	    bpf_map_update_elem(bpf_map__fd(e->skel->maps.sampled_sites), &idx, site, BPF_ANY))
		err = -errno;
	if (!err)
		e->sampled_sites.data[e->sampled_sites.cnt++] = *site;
	return err;
}

void engine_set_finest_rate(struct engine *e, uint64_t rate_bytes)
{
	e->skel->bss->ht_base_log2 = ht_variance_base_log2(rate_bytes);
	e->has_finest_rate = true;
}

int engine_set_rate(struct engine *e, uint32_t idx, uint64_t rate_bytes, uint64_t throw_limit_bytes)
{
	struct ht_rate *rate;
	int err;

	if (idx >= HT_RATES_CAP)
		return -EINVAL;
	if (!e->has_finest_rate) /* sums in units of it begin to exist */
		engine_set_finest_rate(e, rate_bytes);
	if (rate_bytes >> HT_VARIANCE_RANGE_LOG2 > 1ULL << e->skel->bss->ht_base_log2)
		return -ERANGE;
	rate = calloc(1, sizeof(*rate));
	if (!rate)
		return -ENOMEM;
	rate->rate_bytes = rate_bytes;
	rate->throw_limit_bytes = throw_limit_bytes;
	for (uint32_t i = 0; i < HT_BUCKET_CNT; i++) {
		uint64_t low, high;

		estimate_bucket_range(i, &low, &high);
		rate->threshold[i] = estimate_threshold(
			estimate_probability(low + (high - low) / 2, rate_bytes));
	}
	err = bpf_map_update_elem(bpf_map__fd(e->skel->maps.rates), &idx, rate, BPF_ANY);
	if (err)
		err = -errno;
	else if (idx >= e->rate_cnt)
		e->rate_cnt = idx + 1;
	free(rate);
	return err;
}

double engine_variance(const struct engine *e, const struct ht_variance *v)
{
	return ldexp(ldexp((double)v->fine, -20) + (double)v->coarse,
		     2 * (int)e->skel->bss->ht_base_log2);
}

int engine_change_target(struct engine *e, pid_t tgid, const struct engine_change *change)
{
	uint64_t args[3] = { (uint32_t)tgid, change->rate_idx, change->is_alloc_only };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	if (change->rate_idx >= HT_RATES_CAP)
		return -EINVAL;
	if (bpf_prog_test_run_opts(bpf_program__fd(e->skel->progs.ht_change_target), &opts))
		return -errno;
	return opts.retval ? -ENOENT : 0;
}

static int set_throw_limit(struct engine *e, uint32_t idx, struct ht_rate *rate,
			   uint64_t throw_limit_bytes)
{
	int fd = bpf_map__fd(e->skel->maps.rates);

	if (bpf_map_lookup_elem(fd, &idx, rate))
		return -errno;
	if (rate->throw_limit_bytes == throw_limit_bytes)
		return 0;
	rate->throw_limit_bytes = throw_limit_bytes;
	return bpf_map_update_elem(fd, &idx, rate, BPF_ANY) ? -errno : 0;
}

int engine_set_throw_limit(struct engine *e, uint64_t throw_limit_bytes)
{
	struct ht_rate *rate = calloc(1, sizeof(*rate));
	int err = 0;

	if (!rate)
		return -ENOMEM;
	for (uint32_t idx = 0; idx < e->rate_cnt && !err; idx++)
		err = set_throw_limit(e, idx, rate, throw_limit_bytes);
	free(rate);
	return err;
}

int engine_change_rate(struct engine *e, uint32_t idx, uint64_t rate_bytes)
{
	struct ht_rate *rate = calloc(1, sizeof(*rate));
	int err = rate ? 0 : -ENOMEM;

	if (!err && bpf_map_lookup_elem(bpf_map__fd(e->skel->maps.rates), &idx, rate))
		err = -errno;
	if (!err)
		err = engine_set_rate(e, idx, rate_bytes, rate->throw_limit_bytes);
	free(rate);
	return err;
}

void engine_set_sharings(struct engine *e, uint32_t file_id, uint32_t sharings)
{
	uint8_t *now = &e->skel->bss->ht_sharings[file_id];

	e->skel->bss->ht_sharings_cnt += (sharings != 0) - (*now != 0);
	/* Before the other probes are attached, or after they are gone: then both values mean the same. */
	__atomic_store_n(now, (uint8_t)sharings, __ATOMIC_SEQ_CST);
}

struct call_search {
	uint32_t file_id, sharing;
};

static int is_under_way(void *ctx, const void *key, const void *value)
{
	const struct call_search *search = ctx;
	const struct ht_calls *calls = value;

	(void)key;
	for (size_t i = 0; i < HT_PENDING_CAP; i++) {
		const struct ht_call *c = &calls->call[i];

		if (c->sp && HT_COOKIE_FILE(c->cookie) == search->file_id &&
		    HT_COOKIE_SHARING(c->cookie) == search->sharing)
			return 1;
	}
	return 0;
}

bool engine_has_calls(struct engine *e, uint32_t file_id, uint32_t sharing)
{
	struct call_search search = { file_id, sharing };
	const struct map_walk walk = {
		.fd = bpf_map__fd(e->skel->maps.pending),
		.key_bytes = sizeof(uint32_t),
		.value_bytes = sizeof(struct ht_calls),
		.fn = is_under_way,
		.ctx = &search,
	};

	return map_walk_all(&walk) > 0;
}

/* With only one target, its settings are a variable of the object (bpf/target.bpf.h). */
static struct ht_target *only_target(struct engine *e, pid_t tgid)
{
	return e->only_tgid && e->only_tgid == tgid ? &e->skel->bss->only_target : NULL;
}

int engine_put_target(struct engine *e, pid_t tgid, const struct ht_target *t)
{
	struct ht_target *only = only_target(e, tgid);
	struct ht_target target = *t;
	uint32_t key = tgid;

	target.tgid = key;
	if (only) {
		*only = target;
		return 0;
	}
	return bpf_map_update_elem(bpf_map__fd(e->skel->maps.targets), &key, &target, BPF_ANY) ?
		       -errno :
		       0;
}

int engine_get_target(struct engine *e, pid_t tgid, struct ht_target *ret)
{
	struct ht_target *only = only_target(e, tgid);
	uint32_t key = tgid;

	if (only) {
		*ret = *only;
		return 0;
	}
	return bpf_map_lookup_elem(bpf_map__fd(e->skel->maps.targets), &key, ret) ? -errno : 0;
}

int engine_mark_target(struct engine *e, pid_t tgid, uint32_t set, uint32_t clear)
{
	uint64_t args[3] = { (uint32_t)tgid, set, clear };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	if (bpf_prog_test_run_opts(bpf_program__fd(e->skel->progs.ht_mark_target), &opts))
		return -errno;
	return opts.retval ? -ENOENT : 0;
}

int engine_del_target(struct engine *e, pid_t tgid)
{
	struct ht_target *only = only_target(e, tgid);
	uint32_t key = tgid;

	if (only) {
		__atomic_fetch_or(&only->flags, HT_TARGET_OFF, __ATOMIC_SEQ_CST);
		return 0;
	}
	return bpf_map_delete_elem(bpf_map__fd(e->skel->maps.targets), &key) ? -errno : 0;
}
