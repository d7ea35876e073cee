/* SPDX-License-Identifier: MIT */
/*
 * window_run.c - see window_run.h.
 *
 * A window: the probes are put in, then a thread lets sampling begin, ends it when its time has come and takes
 * the probes out (window_edges.h). What the program does without probes is read from when they are found gone
 * until they come back: the quiet stretch before the next window.
 */
#include "budget/window_run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "budget/budget_unit.h"
#include "budget/window_edges.h"
#include "kernel/attach.h"
#include "kernel/engine.h"
#include "kernel/timed_close.h"
#include "track/tracker.h"

#define TICK_NOISE_NS 1.6e6 /* standard error of CPU time between two moments, with ticks of 4 ms */
#define WINDOW_POLL_NS (2 * NS_PER_MS) /* until it is found closed */
/* Sampling tables: 0 to BUDGET_COARSE_CAP as in budget.h, then one that keeps nothing, then finer ones. */
#define RATE_IDX_NONE (BUDGET_COARSE_CAP + 1)
#define RATE_IDX_FINE RATE_IDX_NONE /* + 1 to BUDGET_FINE_CAP */
_Static_assert(RATE_IDX_FINE + BUDGET_FINE_CAP < HT_RATES_CAP, "all tables have a place");

struct window_run {
	struct budget_unit *unit;
	struct windows windows;
	bool is_open;
	uint64_t opened_ns;
	struct window_edges edges; /* of the window */
	struct budget_reading period; /* since when what windows cost is summed up */
	struct budget_reading quiet; /* since when no probes are in; time_ns 0: they still are */
	struct windows_stretch out; /* before the open window */
	struct budget_reading
		sampled; /* since the step to windows and shortly before: counters only */
	double sampled_bytes; /* sum of the rates of those samples */
	uint32_t fine; /* see budget_fine() */
	uint64_t sample_cnt; /* in windows, since the step */
};

static uint64_t fine_rate_bytes(uint64_t rate_bytes, uint32_t fine)
{
	return rate_bytes >> fine ? rate_bytes >> fine : 1;
}

int window_run_set_rates(struct engine *e, uint64_t rate_bytes)
{
	int err = engine_set_rate(e, RATE_IDX_NONE, ENGINE_RATE_NONE, 0);

	for (uint32_t i = 1; i <= BUDGET_FINE_CAP && !err; i++)
		err = engine_set_rate(e, RATE_IDX_FINE + i, fine_rate_bytes(rate_bytes, i), 0);
	return err;
}

int window_run_new(struct budget_unit *u, struct window_run **ret)
{
	struct window_run *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->unit = u;
	*ret = r;
	return 0;
}

void window_run_free(struct window_run *r)
{
	if (!r)
		return;
	window_run_stop(r);
	window_edges_release(&r->edges);
	free(r);
}

void window_run_stop(struct window_run *r)
{
	budget_unit_await_closed(r->unit);
	window_edges_close_clocks(&r->edges);
	r->is_open = false;
}

static uint64_t window_rate_bytes(const struct window_run *r)
{
	return fine_rate_bytes(r->unit->policy->budget.rate_bytes, r->fine);
}

static struct windows_stretch stretch_of(const struct window_run *r, const struct budget_reading *d)
{
	return (struct windows_stretch){
		.wall_ns = (double)d->time_ns,
		.cpu_ns = (double)d->cpu_ns,
		.cost_ns = budget_unit_cost_ns(r->unit, d),
		.alloc_cnt = (double)d->alloc_cnt,
	};
}

int window_run_start(struct window_run *r, uint32_t seed)
{
	/* Until the first window. */
	const struct engine_change none = { .rate_idx = RATE_IDX_NONE, .is_alloc_only = true };
	struct budget_unit *u = r->unit;
	const struct budget_plan *plan = budget_plan(u->budget);
	struct budget_reading d = budget_between(&u->begin, &u->now);
	const struct windows_stretch before = stretch_of(r, &d);

	windows_start(&r->windows, now_ns(), plan->duty, ((uint64_t)seed << 32) ^ (uint64_t)u->pid,
		      &before);
	r->sampled = d;
	r->sampled_bytes = (double)d.sample_cnt *
			   (double)budget_rate_bytes(u->policy->budget.rate_bytes, plan->coarse);
	r->sample_cnt = 0;
	r->period = u->now;
	r->quiet = (struct budget_reading){ 0 };
	return budget_unit_leave_frees(u, PROBES_TAGS, &none);
}

/* Who is in it, and how they are sampled. */
static int set_edges(struct window_run *r)
{
	struct budget_unit *u = r->unit;
	const struct unit_policy *policy = u->policy;
	struct window_edges *we = &r->edges;
	int err = 0;

	r->fine = budget_fine(policy->budget.costs, &r->sampled, r->sampled_bytes,
			      policy->budget.rate_bytes);
	budget_set_window_rate(u->budget, window_rate_bytes(r));
	we->engine = policy->engine;
	we->pids.cnt = 0;
	for (size_t i = 0; i < budget_unit_pid_cnt(u) && !err; i++)
		err = vec_push(&we->pids, budget_unit_pid_at(u, i));
	we->inside = (struct engine_change){
		.rate_idx = r->fine ? RATE_IDX_FINE + r->fine : 0,
		.is_alloc_only = true,
		.scale = windows_open(&r->windows, &r->out),
	};
	we->outside = we->inside;
	we->outside.rate_idx = RATE_IDX_NONE;
	if (!err)
		window_edges_open_clocks(we);
	return err ? err : tracker_hits_idx(policy->tracker, u->pid, &we->hits_idx);
}

static int open_window(struct window_run *r)
{
	struct budget_unit *u = r->unit;
	struct attach_links *links = NULL;
	struct budget_reading now, d;
	int err;

	budget_unit_await_closed(u); /* of the last one, long since done */
	err = budget_unit_read(u, &now);
	if (err)
		return err;
	d = budget_between(r->quiet.time_ns ? &r->quiet : &now, &now);
	r->out = stretch_of(r, &d);
	err = set_edges(r);
	if (!err)
		err = attach_links_new(&links);
	if (!err)
		err = tracker_add_window(u->policy->tracker, u->pid,
					 r->windows.kind == WINDOWS_HEAVY, links);
	if (!err) {
		r->opened_ns = now.time_ns;
		err = window_edges_start(&r->edges, links, r->windows.window_ns, &u->closing);
	} else {
		attach_links_free(links);
	}
	r->is_open = !err;
	if (err) {
		window_edges_close_clocks(&r->edges);
		windows_put_off(&r->windows, now.time_ns);
	}
	return err;
}

static void log_window(const struct window_run *r, const struct windows_stretch *in)
{
	const struct windows *w = &r->windows;
	struct windows_slowdown slow = windows_slowdown(w, WINDOWS_LIGHT);

	log_debug(
		"%s: PID %d: window %u: opened after %.1f ms, %.1f ms long (%.1f planned), gone "
		"%.1f ms later: %.0f hits, CPU %.1f ms, probes %.1f ms; before: %.1f ms, CPU %.1f ms, "
		"%.0f hits while moving; %llu samples, scale %.1f, slowdown %.2f (%.2f to %.2f)",
		r->unit->policy->command, r->unit->pid, w->cnt,
		(double)(r->edges.begin.time_ns - r->opened_ns) / 1e6, in->wall_ns / 1e6,
		(double)windows_length_ns(w->duty) / 1e6,
		(double)(r->quiet.time_ns - r->edges.end.time_ns) / 1e6, in->alloc_cnt,
		in->cpu_ns / 1e6, in->cost_ns / 1e6, r->out.wall_ns / 1e6, r->out.cpu_ns / 1e6,
		r->out.alloc_cnt, (unsigned long long)r->sample_cnt, w->scale, slow.value, slow.low,
		slow.high);
}

static void count_sampled(struct window_run *r, const struct budget_reading *in)
{
	r->sample_cnt += in->sample_cnt;
	r->sampled.alloc_cnt += in->alloc_cnt;
	r->sampled.sample_cnt += in->sample_cnt;
	r->sampled.return_cnt += in->return_cnt;
	r->sampled.stack_ns += in->stack_ns;
	r->sampled_bytes += (double)in->sample_cnt * (double)window_rate_bytes(r);
}

static int end_window(struct window_run *r)
{
	struct budget_unit *u = r->unit;
	struct budget_reading in, all, now;
	struct windows_stretch seen;
	int err;

	r->is_open = false;
	err = budget_unit_read(u, &now);
	if (!err && !u->pid)
		err = budget_unit_change(u, &r->edges.outside); /* children that came meanwhile */
	if (err)
		return err;
	in = budget_between(&r->edges.begin, &r->edges.end);
	all = budget_between(&r->period, &now);
	seen = stretch_of(r, &in);
	if (r->edges.has_ticks)
		seen.cpu_noise_ns = TICK_NOISE_NS;
	window_edges_close_clocks(&r->edges);
	count_sampled(r, &in);
	r->out.alloc_cnt = (double)all.alloc_cnt - seen.alloc_cnt;
	budget_saw_window(u->budget, &in, &all);
	windows_set_duty(&r->windows, budget_plan(u->budget)->duty);
	windows_close(&r->windows, now_ns(), &seen, &r->out);
	r->period = r->quiet = now; /* the time without probes begins */
	log_window(r, &seen);
	return 0;
}

/* The probes of the step before are out. */
static int begin_quiet(struct window_run *r)
{
	int err = budget_unit_read(r->unit, &r->quiet);

	if (!err && !r->windows.cnt)
		r->period = r->quiet; /* what they cost to the end is no window's */
	return err;
}

int window_run_work(struct window_run *r)
{
	const struct timed_close *closing = r->unit->closing;
	int err = 0;

	if (r->is_open && timed_close_is_done(closing))
		err = end_window(r);
	if (!err && !r->is_open && !r->quiet.time_ns && (!closing || timed_close_is_done(closing)))
		err = begin_quiet(r);
	if (!err && !r->is_open && now_ns() >= r->windows.open_ns)
		err = open_window(r);
	return err == -ENOMEM ? err : 0; /* else it has ended */
}

uint64_t window_run_due_ns(const struct window_run *r)
{
	uint64_t soon_ns = now_ns() + WINDOW_POLL_NS, end_ns;

	if (!r->is_open)
		return r->windows.open_ns;
	/* An open window closes by itself; it is found closed soon after. */
	end_ns = r->opened_ns + r->windows.window_ns + WINDOW_POLL_NS;
	return end_ns > soon_ns ? end_ns : soon_ns;
}

void window_run_view(const struct window_run *r, struct window_run_view *ret)
{
	*ret = (struct window_run_view){
		.rate_bytes = window_rate_bytes(r),
		.window_cnt = r->windows.cnt,
		.slowdown = windows_slowdown(&r->windows, WINDOWS_LIGHT),
		.spread = sqrt(pow(windows_spread(&r->windows), 2) + 1 / (double)r->sample_cnt),
	};
}
