/* SPDX-License-Identifier: MIT */
/*
 * governor.c - see governor.h.
 *
 * Putting a step into effect, so that no sample is ever counted as outstanding whose free may have gone
 * unseen: on the way down allocations go into the sums only (in BPF), then the free probes go, then
 * what is outstanding is dropped; on the way up the free probes come first.
 *
 * Probes of perf events go one after the other, each with a grace period, most of a second in all: there
 * are no windows with them, what does not fit is taken out.
 *
 * A window: the probes are put in, then a thread lets sampling begin, ends it when its time has come and takes
 * the probes out (window_edges.h). What the program does without probes is read from when they are found gone
 * until they come back.
 */
#include "budget/governor.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hmap.h"
#include "base/log.h"
#include "base/units.h"
#include "base/vec.h"
#include "budget/governor_words.h"
#include "budget/window_edges.h"
#include "budget/windows.h"
#include "kernel/attach.h"
#include "kernel/engine.h"
#include "kernel/timed_close.h"
#include "track/tracker.h"

#define QUIET_NS NS_PER_S
#define TICK_NOISE_NS 1.6e6 /* standard error of CPU time between two moments, with ticks of 4 ms */
#define WINDOW_POLL_NS (2 * NS_PER_MS) /* until it is found closed */
/* Sampling tables: 0 to BUDGET_COARSE_CAP as in budget.h, then one that keeps nothing, then finer ones. */
#define RATE_IDX_NONE (BUDGET_COARSE_CAP + 1)
#define RATE_IDX_FINE RATE_IDX_NONE /* + 1 to BUDGET_FINE_CAP */
_Static_assert(RATE_IDX_FINE + BUDGET_FINE_CAP < HT_RATES_CAP, "all tables have a place");

/* A process, or all of them when they are one. */
struct unit {
	pid_t pid; /* 0: all */
	uint32_t generation;
	bool is_ended;
	uint64_t ended_cpu_ns; /* is_one: of processes that have ended */
	struct budget *budget;
	struct budget_reading begin, now;
	/* windows */
	struct windows windows;
	struct timed_close *closing; /* probes that are in for a window, or on their way out */
	bool is_window;
	uint64_t opened_ns;
	struct window_edges
		*edges; /* of the window; it has its own place, where the thread finds it */
	struct budget_reading period; /* since when what windows cost is summed up */
	struct budget_reading quiet; /* since when no probes are in; time_ns 0: they still are */
	struct windows_stretch out; /* before the open window */
	struct budget_reading
		sampled; /* since the step to windows and shortly before: counters only */
	double sampled_bytes; /* sum of the rates of those samples */
	uint32_t fine; /* see budget_fine() */
	uint64_t window_samples;
	/* what was done */
	struct governor_history history;
	uint64_t inuse_ns;
	bool has_inuse;
};

struct governor {
	struct engine *engine;
	struct tracker *tracker;
	struct governor_options opts;
	VEC(struct unit) units;
	struct hmap idx; /* pid -> index in units */
	uint64_t due_ns; /* of the next look at all */
	uint64_t host_ns; /* since when host_cost_ns is summed up */
	double host_cost_ns;
	double host_factor, host_share;
	uint32_t seed;
	bool is_paused, is_stopped, is_measured;
};

int governor_parse_percent(const char *text, double *ret_share)
{
	char *end;
	double percent;

	if (!strcmp(text, "off") || !strcmp(text, "none")) {
		*ret_share = 0;
		return 0;
	}
	errno = 0;
	percent = strtod(text, &end);
	if (errno || end == text || (*end && strcmp(end, "%") != 0) || !isfinite(percent) ||
	    percent < 0 || percent >= 100 || (percent > 0 && percent < 0.01))
		return -EINVAL;
	*ret_share = percent / 100;
	return 0;
}

static uint64_t fine_rate_bytes(uint64_t rate_bytes, uint32_t fine)
{
	return rate_bytes >> fine ? rate_bytes >> fine : 1;
}

int governor_new(struct engine *e, struct tracker *t, const struct governor_options *opts,
		 struct governor **ret)
{
	struct governor *g = calloc(1, sizeof(*g));
	int err = 0;

	if (!g)
		return -ENOMEM;
	g->engine = e;
	g->tracker = t;
	g->opts = *opts;
	g->host_factor = 1;
	g->seed = (uint32_t)now_ns();
	hmap_init(&g->idx, sizeof(uint32_t));
	/* The limit of what throws is set with the first one's. */
	for (uint32_t i = 1; i <= BUDGET_COARSE_CAP && !err; i++)
		err = engine_set_rate(e, i, budget_rate_bytes(opts->rate_bytes, i), 0);
	if (!err)
		err = engine_set_rate(e, RATE_IDX_NONE, ENGINE_RATE_NONE, 0);
	for (uint32_t i = 1; i <= BUDGET_FINE_CAP && !err; i++)
		err = engine_set_rate(e, RATE_IDX_FINE + i, fine_rate_bytes(opts->rate_bytes, i),
				      0);
	g->is_measured = engine_measure_hits(e, true) != 0;
	if (err)
		governor_free(g);
	else
		*ret = g;
	return err;
}

/* At most one set of probes is on its way out. */
static void await_closed(struct unit *u)
{
	timed_close_free(u->closing);
	u->closing = NULL;
	u->is_window = false;
}

static void unit_release(struct unit *u)
{
	await_closed(u);
	if (u->edges)
		window_edges_release(u->edges);
	free(u->edges);
	budget_free(u->budget);
}

void governor_free(struct governor *g)
{
	struct unit *u;

	if (!g)
		return;
	vec_each(&g->units, u)
		unit_release(u);
	vec_release(&g->units);
	hmap_release(&g->idx);
	free(g);
}

static struct unit *find_unit(const struct governor *g, pid_t pid)
{
	uint32_t key = g->opts.is_one ? 0 : (uint32_t)pid;
	const uint64_t *idx = hmap_get(&g->idx, &key);

	return idx ? &g->units.data[*idx] : NULL;
}

/* With is_one: of all processes that run; those that have ended count on. */
static int read_cpu(struct governor *g, struct unit *u, uint64_t *ret_ns)
{
	uint64_t sum = 0, ns;

	if (u->pid)
		return process_cpu_clock_ns(u->pid, ret_ns);
	for (size_t i = 0; i < tracker_running_cnt(g->tracker); i++)
		if (!process_cpu_clock_ns(tracker_running_at(g->tracker, i), &ns))
			sum += ns;
	/* A process that has ended takes its time out of the sum: it stays in what is counted. */
	if (sum + u->ended_cpu_ns < u->now.cpu_ns)
		u->ended_cpu_ns = u->now.cpu_ns - sum;
	*ret_ns = sum + u->ended_cpu_ns;
	return 0;
}

/* What goes with hits that were just read. */
static int complete_reading(struct governor *g, struct unit *u, const struct ht_hits *hits,
			    struct budget_reading *ret)
{
	int err = read_cpu(g, u, &ret->cpu_ns);

	if (err)
		return err;
	ret->time_ns = now_ns();
	budget_reading_set_hits(ret, hits);
	return 0;
}

static int read_unit(struct governor *g, struct unit *u, struct budget_reading *ret)
{
	struct ht_hits hits;
	int err = tracker_read_hits(g->tracker, u->pid, &hits);

	return err ? err : complete_reading(g, u, &hits, ret);
}

static double cost_between(const struct governor *g, const struct budget_reading *from,
			   const struct budget_reading *to)
{
	struct budget_reading d = budget_between(from, to);

	return fmin(budget_cost_ns(&g->opts.costs, &d), (double)d.cpu_ns);
}

/* The host's limit is kept by making those of the processes smaller. */
static double unit_limit(const struct governor *g)
{
	if (g->opts.max_share > 0)
		return g->opts.max_share;
	return g->opts.max_host_share > 0 ? 1 : 0;
}

static int add_unit(struct governor *g, pid_t pid)
{
	const struct budget_options opts = {
		.max_share = unit_limit(g),
		.rate_bytes = g->opts.rate_bytes,
		.has_no_windows = engine_mode(g->engine) == ATTACH_PERF,
		.costs = &g->opts.costs,
	};
	struct unit u = { .pid = g->opts.is_one ? 0 : pid, .has_inuse = !g->is_paused };
	uint32_t key = (uint32_t)u.pid;
	int err = read_unit(g, &u, &u.now);

	if (err)
		return err == -ENOMEM ? err : 0; /* it has ended */
	u.begin = u.now;
	u.generation = tracker_generation(g->tracker, u.pid);
	err = budget_new(&opts, &u.now, &u.budget);
	if (!err)
		err = vec_push(&g->units, u);
	if (!err)
		err = hmap_put(&g->idx, &key, g->units.cnt - 1);
	else
		budget_free(u.budget);
	return err;
}

static int change_targets(struct governor *g, const struct unit *u,
			  const struct engine_change *change)
{
	int err = 0;

	if (u->pid)
		err = engine_change_target(g->engine, u->pid, change);
	for (size_t i = 0; !u->pid && i < tracker_running_cnt(g->tracker) && !err; i++)
		err = engine_change_target(g->engine, tracker_running_at(g->tracker, i), change);
	return err == -ENOENT ? 0 : err;
}

static int drop_live(struct governor *g, struct unit *u)
{
	int err = 0;

	u->has_inuse = false;
	if (u->pid)
		return engine_drop_live(g->engine, u->pid, tracker_generation(g->tracker, u->pid));
	for (size_t i = 0; i < tracker_running_cnt(g->tracker) && !err; i++) {
		pid_t pid = tracker_running_at(g->tracker, i);

		err = engine_drop_live(g->engine, pid, tracker_generation(g->tracker, pid));
	}
	return err;
}

/* Leave in what `kept` says; what goes is closed by a thread. */
static int keep_probes(struct governor *g, struct unit *u, enum probes_kept kept)
{
	struct attach_links *gone = NULL;
	int err;

	await_closed(u);
	err = attach_links_new(&gone);
	if (err)
		return err;
	err = tracker_keep_probes(g->tracker, u->pid, kept, gone);
	if (attach_links_cnt(gone)) {
		int close_err = timed_close_start(gone, 0, NULL, &u->closing);

		return err ? err : close_err;
	}
	attach_links_free(gone);
	return err;
}

/* Everything that is allocated from now on is seen to its end. */
static int see_frees(struct governor *g, struct unit *u, struct engine_change *change)
{
	int err = 0;

	change->is_alloc_only = false;
	if (!u->has_inuse) {
		err = keep_probes(g, u, PROBES_ALL);
		u->inuse_ns = now_ns();
		u->has_inuse = true;
	}
	return err ? err : change_targets(g, u, change);
}

/* Frees are not seen any more. */
static int leave_frees(struct governor *g, struct unit *u, enum probes_kept kept,
		       const struct engine_change *change)
{
	int err = change_targets(g, u, change);

	if (!err)
		err = keep_probes(g, u, kept);
	if (!err && u->has_inuse)
		err = drop_live(g, u);
	return err;
}

static struct windows_stretch stretch_of(const struct governor *g, const struct budget_reading *d)
{
	return (struct windows_stretch){
		.wall_ns = (double)d->time_ns,
		.cpu_ns = (double)d->cpu_ns,
		.cost_ns = fmin(budget_cost_ns(&g->opts.costs, d), (double)d->cpu_ns),
		.alloc_cnt = (double)d->alloc_cnt,
	};
}

static void start_windows(struct governor *g, struct unit *u)
{
	const struct budget_plan *plan = budget_plan(u->budget);
	struct budget_reading d = budget_between(&u->begin, &u->now);
	const struct windows_stretch before = stretch_of(g, &d);

	g->seed = g->seed * 1664525 + 1013904223;
	windows_start(&u->windows, now_ns(), plan->duty,
		      ((uint64_t)g->seed << 32) ^ (uint64_t)u->pid, &before);
	u->sampled = d;
	u->sampled_bytes =
		(double)d.sample_cnt * (double)budget_rate_bytes(g->opts.rate_bytes, plan->coarse);
	u->window_samples = 0;
	u->period = u->now;
	u->quiet = (struct budget_reading){ 0 };
}

static int apply(struct governor *g, struct unit *u)
{
	const struct budget_plan *plan = budget_plan(u->budget);
	struct engine_change change = { .rate_idx = plan->coarse, .is_alloc_only = true };

	if (g->is_paused || g->is_stopped)
		return 0;
	await_closed(u); /* the end of a window changes how its process is sampled */
	switch (plan->step) {
	case BUDGET_FULL:
	case BUDGET_COARSE:
		return see_frees(g, u, &change);
	case BUDGET_ALLOCS:
		return leave_frees(g, u, PROBES_ALLOCS, &change);
	case BUDGET_WINDOWS:
		start_windows(g, u);
		change.rate_idx = RATE_IDX_NONE; /* until the first one */
		return leave_frees(g, u, PROBES_TAGS, &change);
	case BUDGET_OUT:
		break;
	}
	return leave_frees(g, u, PROBES_NONE, &change);
}

/* The step is over and done with: what it means is told. */
static int take_step(struct governor *g, struct unit *u, enum budget_step from)
{
	const struct governor_step step = {
		.after_ns = u->now.time_ns - u->begin.time_ns,
		.from = from,
		.plan = *budget_plan(u->budget),
		.rate_bytes = budget_rate_bytes(g->opts.rate_bytes, budget_plan(u->budget)->coarse),
		.share = budget_share_at_step(u->budget),
		.limit = unit_limit(g) * g->host_factor,
		.is_kill = budget_was_killed(u->budget),
	};
	char text[GOVERNOR_WORDS_CAP];
	int err = apply(g, u);

	governor_history_add(&u->history, &step);
	governor_step_words(&step, text, sizeof(text));
	log_msg(step.plan.step > from || step.is_kill ? LOG_WARN : LOG_INFO, "%s: PID %d: %s",
		g->opts.command, u->pid ? u->pid : tracker_running_at(g->tracker, 0), text);
	if (err && err != -ESRCH)
		log_warn("%s: PID %d: the probes could not be changed: %s", g->opts.command, u->pid,
			 strerror(-err));
	return err == -ENOMEM ? err : 0;
}

/* Who is in it, and how they are sampled. */
static int set_edges(struct governor *g, struct unit *u)
{
	struct window_edges *we = u->edges;
	int err = 0;

	if (!we)
		we = u->edges = calloc(1, sizeof(*we));
	if (!we)
		return -ENOMEM;
	u->fine = budget_fine(&g->opts.costs, &u->sampled, u->sampled_bytes, g->opts.rate_bytes);
	budget_set_window_rate(u->budget, fine_rate_bytes(g->opts.rate_bytes, u->fine));
	we->engine = g->engine;
	we->pids.cnt = 0;
	if (u->pid)
		err = vec_push(&we->pids, u->pid);
	for (size_t i = 0; !u->pid && i < tracker_running_cnt(g->tracker) && !err; i++)
		err = vec_push(&we->pids, tracker_running_at(g->tracker, i));
	we->inside = (struct engine_change){
		.rate_idx = u->fine ? RATE_IDX_FINE + u->fine : 0,
		.is_alloc_only = true,
		.scale = windows_open(&u->windows, &u->out),
	};
	we->outside = we->inside;
	we->outside.rate_idx = RATE_IDX_NONE;
	if (!err)
		window_edges_open_clocks(we);
	return err ? err : tracker_hits_idx(g->tracker, u->pid, &we->hits_idx);
}

static int open_window(struct governor *g, struct unit *u)
{
	struct attach_links *links = NULL;
	struct budget_reading d;
	int err;

	await_closed(u); /* of the last one, long since done */
	err = read_unit(g, u, &u->now);
	if (err)
		return err;
	d = budget_between(u->quiet.time_ns ? &u->quiet : &u->now, &u->now);
	u->out = stretch_of(g, &d);
	err = set_edges(g, u);
	if (!err)
		err = attach_links_new(&links);
	if (!err)
		err = tracker_add_window(g->tracker, u->pid, u->windows.kind == WINDOWS_HEAVY,
					 links);
	if (err) {
		attach_links_free(links);
		return err;
	}
	u->opened_ns = u->now.time_ns;
	err = window_edges_start(u->edges, links, u->windows.window_ns, &u->closing);
	u->is_window = !err;
	return err;
}

static void log_window(const struct governor *g, const struct unit *u,
		       const struct windows_stretch *in)
{
	const struct windows *w = &u->windows;
	struct windows_slowdown slow = windows_slowdown(w, WINDOWS_LIGHT);

	log_debug(
		"%s: PID %d: window %u: opened after %.1f ms, %.1f ms long (%.1f planned), gone "
		"%.1f ms later: %.0f hits, CPU %.1f ms, probes %.1f ms; before: %.1f ms, CPU %.1f ms, "
		"%.0f hits while moving; %llu samples, scale %.1f, slowdown %.2f (%.2f to %.2f)",
		g->opts.command, u->pid, w->cnt,
		(double)(u->edges->begin.time_ns - u->opened_ns) / 1e6, in->wall_ns / 1e6,
		(double)windows_length_ns(w->duty) / 1e6,
		(double)(u->quiet.time_ns - u->edges->end.time_ns) / 1e6, in->alloc_cnt,
		in->cpu_ns / 1e6, in->cost_ns / 1e6, u->out.wall_ns / 1e6, u->out.cpu_ns / 1e6,
		u->out.alloc_cnt, (unsigned long long)u->window_samples, w->scale, slow.value,
		slow.low, slow.high);
}

static int end_window(struct governor *g, struct unit *u)
{
	const struct engine_change *outside = &u->edges->outside;
	struct budget_reading in, all, now;
	struct windows_stretch seen;
	int err;

	u->is_window = false;
	err = read_unit(g, u, &now);
	if (!err && !u->pid)
		err = change_targets(g, u, outside); /* children that came meanwhile */
	if (err)
		return err;
	in = budget_between(&u->edges->begin, &u->edges->end);
	all = budget_between(&u->period, &now);
	seen = stretch_of(g, &in);
	if (u->edges->has_ticks)
		seen.cpu_noise_ns = TICK_NOISE_NS;
	window_edges_close_clocks(u->edges);
	u->window_samples += in.sample_cnt;
	u->sampled.alloc_cnt += in.alloc_cnt;
	u->sampled.sample_cnt += in.sample_cnt;
	u->sampled.return_cnt += in.return_cnt;
	u->sampled.stack_ns += in.stack_ns;
	u->sampled_bytes +=
		(double)in.sample_cnt * (double)fine_rate_bytes(g->opts.rate_bytes, u->fine);
	u->out.alloc_cnt = (double)all.alloc_cnt - seen.alloc_cnt;
	budget_saw_window(u->budget, &in, &all);
	windows_set_duty(&u->windows, budget_plan(u->budget)->duty);
	windows_close(&u->windows, now_ns(), &seen, &u->out);
	u->period = u->quiet = now; /* the time without probes begins */
	log_window(g, u, &seen);
	return 0;
}

/* The probes of the step before are out. */
static int begin_quiet(struct governor *g, struct unit *u)
{
	int err = read_unit(g, u, &u->quiet);

	if (!err && !u->windows.cnt)
		u->period = u->quiet; /* what they cost to the end is no window's */
	return err;
}

static int work_windows(struct governor *g, struct unit *u)
{
	int err = 0;

	if (budget_plan(u->budget)->step != BUDGET_WINDOWS || g->is_paused || g->is_stopped)
		return 0;
	if (u->is_window && timed_close_is_done(u->closing))
		err = end_window(g, u);
	if (!err && !u->is_window && !u->quiet.time_ns &&
	    (!u->closing || timed_close_is_done(u->closing)))
		err = begin_quiet(g, u);
	if (!err && !u->is_window && now_ns() >= u->windows.open_ns)
		err = open_window(g, u);
	return err == -ENOMEM ? err : 0; /* else it has ended */
}

/* Another image: nothing is known of what it needs. */
static int renew(struct governor *g, struct unit *u)
{
	const struct budget_options opts = {
		.max_share = unit_limit(g),
		.rate_bytes = g->opts.rate_bytes,
		.has_no_windows = engine_mode(g->engine) == ATTACH_PERF,
		.costs = &g->opts.costs,
	};
	enum budget_step from = budget_plan(u->budget)->step;
	struct budget *fresh;
	int err;

	u->generation = tracker_generation(g->tracker, u->pid);
	if (from == BUDGET_FULL)
		return 0;
	err = budget_new(&opts, &u->now, &fresh);
	if (err)
		return err;
	budget_free(u->budget);
	u->budget = fresh;
	u->begin = u->now;
	return take_step(g, u, from);
}

/* Not hit since the last look, which was not long ago: most processes, most of the time. */
static bool is_quiet(const struct unit *u, const struct ht_hits *hits)
{
	return budget_plan(u->budget)->step == BUDGET_FULL && hits->alloc_cnt == u->now.alloc_cnt &&
	       hits->free_cnt == u->now.free_cnt && now_ns() - u->now.time_ns < QUIET_NS;
}

static int look_at(struct governor *g, struct unit *u, double *cost_ns)
{
	enum budget_step from = budget_plan(u->budget)->step;
	struct budget_reading now = u->now;
	struct ht_hits hits;
	int err = tracker_read_hits(g->tracker, u->pid, &hits);

	if (!err && is_quiet(u, &hits))
		return 0;
	if (!err)
		err = complete_reading(g, u, &hits, &now);
	if (err)
		return err == -ENOMEM ? err : 0;
	*cost_ns += cost_between(g, &u->now, &now);
	u->now = now;
	if (g->is_paused)
		return 0;
	if (u->pid && tracker_generation(g->tracker, u->pid) != u->generation)
		return renew(g, u);
	if (!budget_update(u->budget, &now, g->host_factor))
		return 0;
	return take_step(g, u, from);
}

/* Processes come and go. */
static int match_units(struct governor *g)
{
	size_t cnt = tracker_running_cnt(g->tracker);
	int err = 0;

	for (size_t i = g->units.cnt; i-- > 0;) {
		struct unit *u = &g->units.data[i], *last = &g->units.data[g->units.cnt - 1];
		uint32_t key = (uint32_t)u->pid;

		u->is_ended = u->pid ? !tracker_follows(g->tracker, u->pid) : !cnt;
		if (!u->is_ended || g->opts.keeps_ended)
			continue;
		unit_release(u);
		hmap_del(&g->idx, &key);
		if (u != last) {
			*u = *last;
			key = (uint32_t)u->pid;
			*hmap_get(&g->idx, &key) = i;
		}
		g->units.cnt--;
	}
	for (size_t i = 0; i < cnt && !err; i++) {
		pid_t pid = tracker_running_at(g->tracker, i);

		if (!find_unit(g, pid))
			err = add_unit(g, pid);
	}
	return err;
}

static int look_at_all(struct governor *g, uint64_t now)
{
	double cost_ns = 0, host_ns;
	int err = match_units(g);

	for (size_t i = 0; i < g->units.cnt && !err; i++)
		if (!g->units.data[i].is_ended)
			err = look_at(g, &g->units.data[i], &cost_ns);
	g->host_cost_ns += cost_ns;
	if (!g->host_ns)
		g->host_ns = now;
	if (now - g->host_ns < NS_PER_S)
		return err;
	host_ns = (double)(now - g->host_ns) * (double)sysconf(_SC_NPROCESSORS_ONLN);
	g->host_share = g->host_cost_ns / host_ns;
	g->host_factor = budget_host_factor(g->host_factor, g->host_cost_ns, host_ns,
					    g->opts.max_host_share);
	g->host_cost_ns = 0;
	g->host_ns = now;
	return err;
}

/*
 * Calibration is done with an empty program. What the real ones add is measured once, over the first hits
 * that there are.
 */
static void measure_programs(struct governor *g)
{
	double ns;
	int err;

	if (g->is_measured)
		return;
	err = engine_hit_ns(g->engine, &ns);
	if (err == -EAGAIN)
		return;
	g->is_measured = true;
	engine_measure_hits(g->engine, false);
	if (err)
		return;
	log_debug("%s: a hit costs %.0f ns, and %.0f ns in its program", g->opts.command,
		  g->opts.costs.emulated_ns, ns);
	g->opts.costs.emulated_ns += ns;
	g->opts.costs.stepped_ns += ns;
}

int governor_work(struct governor *g)
{
	uint64_t now = now_ns();
	struct unit *u;
	int err = 0;

	if (g->is_stopped)
		return 0;
	vec_each(&g->units, u)
		if (!u->is_ended && !err)
			err = work_windows(g, u);
	if (!err && now >= g->due_ns) {
		g->due_ns = now + BUDGET_INTERVAL_NS;
		measure_programs(g);
		err = look_at_all(g, now);
	}
	return err;
}

int governor_wait_ms(const struct governor *g)
{
	uint64_t now = now_ns(), due = g->due_ns;
	const struct unit *u;

	vec_each(&g->units, u) {
		if (u->is_ended || g->is_paused || budget_plan(u->budget)->step != BUDGET_WINDOWS)
			continue;
		/* An open window closes by itself; it is found closed soon after. */
		if (u->is_window) {
			uint64_t end = u->opened_ns + u->windows.window_ns + WINDOW_POLL_NS;

			end = end > now + WINDOW_POLL_NS ? end : now + WINDOW_POLL_NS;
			due = end < due ? end : due;
		} else if (u->windows.open_ns < due) {
			due = u->windows.open_ns;
		}
	}
	return due <= now ? 0 : (int)((due - now + NS_PER_MS - 1) / NS_PER_MS);
}

int governor_pause(struct governor *g, bool pause)
{
	struct engine_change change = { .is_alloc_only = true };
	struct unit *u;
	int err = match_units(g);

	g->is_paused = pause;
	tracker_hold_probes(g->tracker, pause);
	vec_each(&g->units, u) {
		if (err || u->is_ended)
			continue;
		await_closed(u);
		change.rate_idx = budget_plan(u->budget)->coarse;
		err = pause ? leave_frees(g, u, PROBES_NONE, &change) : apply(g, u);
	}
	return err;
}

bool governor_is_paused(const struct governor *g)
{
	return g->is_paused;
}

void governor_stop(struct governor *g)
{
	struct unit *u;

	g->is_stopped = true;
	vec_each(&g->units, u)
		await_closed(u);
}

static void view_unit(const struct governor *g, const struct unit *u, struct governor_view *ret)
{
	const struct budget_plan *plan = budget_plan(u->budget);
	struct windows_slowdown slowdown;

	*ret = (struct governor_view){
		.step = g->is_paused ? BUDGET_OUT : plan->step,
		.share = budget_share(u->budget),
		.share_overall = budget_share_overall(u->budget),
		.limit = unit_limit(g) * g->host_factor,
		.rate_bytes = budget_rate_bytes(g->opts.rate_bytes, plan->coarse),
		.duty = 1,
		.slowdown = 1,
		.slowdown_low = 1,
		.slowdown_high = 1,
		.step_cnt = u->history.step_cnt,
		.inuse_ns = u->inuse_ns,
		.has_inuse = u->has_inuse,
	};
	if (ret->step == BUDGET_OUT)
		ret->duty = 0;
	if (ret->step == BUDGET_WINDOWS) {
		ret->duty = plan->duty;
		slowdown = windows_slowdown(&u->windows, WINDOWS_LIGHT);
		ret->slowdown = slowdown.value;
		ret->slowdown_low = slowdown.low;
		ret->slowdown_high = slowdown.high;
		ret->window_cnt = u->windows.cnt;
		ret->rate_bytes = fine_rate_bytes(g->opts.rate_bytes, u->fine);
		ret->spread =
			sqrt(pow(windows_spread(&u->windows), 2) + 1 / (double)u->window_samples);
	}
}

int governor_view(const struct governor *g, pid_t pid, struct governor_view *ret)
{
	const struct unit *u = find_unit(g, pid);

	if (!u)
		return -ENOENT;
	view_unit(g, u, ret);
	return 0;
}

double governor_host_share(const struct governor *g)
{
	return g->host_share;
}

int governor_comment(const struct governor *g, pid_t pid, struct profile *p)
{
	const struct unit *u;
	int err = governor_comment_limit(p, g->opts.max_share, g->opts.max_host_share);

	vec_each(&g->units, u) {
		struct governor_view view;

		if (err || (pid && u->pid && u->pid != pid))
			continue;
		view_unit(g, u, &view);
		err = governor_comment_unit(p, pid || g->units.cnt == 1 ? 0 : u->pid, &view,
					    &u->history, u->begin.time_ns);
	}
	return err;
}
