/* SPDX-License-Identifier: MIT */
/*
 * governor.c - see governor.h.
 *
 * Here are the steps: who has a budget, the looks at what it was used for, and what each step asks of the
 * probes. How probes go and come is in budget_unit.c, how windows are run in window_run.c.
 *
 * Probes of perf events go one after the other, each with a grace period, most of a second in all: there
 * are no windows with them, what does not fit is taken out.
 */
#include "budget/governor.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hmap.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "base/vec.h"
#include "budget/budget_unit.h"
#include "budget/governor_words.h"
#include "budget/window_run.h"
#include "kernel/attach.h"
#include "kernel/engine.h"
#include "track/tracker.h"

#define QUIET_NS NS_PER_S
/* Where processes come and go, nearly each of them may need its step. */
#define LOG_BURST 60
#define LOG_EVERY_NS (2 * NS_PER_S)

/* Who has a budget. */
struct governed {
	struct budget_unit *unit;
	struct window_run *windows;
	uint32_t generation; /* of the image that the budget is for */
	bool is_ended;
	struct governor_history history; /* what was done */
};

struct governor {
	struct governor_options opts;
	struct unit_policy policy;
	VEC(struct governed) governed;
	struct hmap idx; /* pid -> index in governed */
	uint64_t due_ns; /* of the next look at all */
	uint64_t host_ns; /* since when host_cost_ns is summed up */
	double host_cost_ns;
	double host_factor, host_share;
	uint32_t seed;
	bool is_paused, is_stopped, is_measured;
	struct log_limit log; /* of steps */
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

/* The host's limit is kept by making those of the processes smaller. */
static double unit_limit(const struct governor_options *opts)
{
	if (opts->max_share > 0)
		return opts->max_share;
	return opts->max_host_share > 0 ? 1 : 0;
}

int governor_new(struct engine *e, struct tracker *t, const struct governor_options *opts,
		 struct governor **ret)
{
	struct governor *g = calloc(1, sizeof(*g));
	int err = 0;

	if (!g)
		return -ENOMEM;
	g->opts = *opts;
	g->log = (struct log_limit){ .every_ns = LOG_EVERY_NS, .burst = LOG_BURST };
	g->policy = (struct unit_policy){
		.engine = e,
		.tracker = t,
		.command = opts->command,
		.budget = {
			.max_share = unit_limit(opts),
			.rate_bytes = opts->rate_bytes,
			.has_no_windows = engine_mode(e) == ATTACH_PERF,
			.costs = &g->opts.costs,
		},
	};
	g->host_factor = 1;
	g->seed = (uint32_t)now_ns();
	hmap_init(&g->idx, sizeof(uint32_t));
	/* The limit of what throws is set with the first one's. */
	for (uint32_t i = 1; i <= BUDGET_COARSE_CAP && !err; i++)
		err = engine_set_rate(e, i, budget_rate_bytes(opts->rate_bytes, i), 0);
	if (!err)
		err = window_run_set_rates(e, opts->rate_bytes);
	g->is_measured = engine_measure_hits(e, true) != 0;
	if (err)
		governor_free(g);
	else
		*ret = g;
	return err;
}

void governor_set_limits(struct governor *g, double max_share, double max_host_share)
{
	struct governed *gd;

	g->opts.max_share = max_share;
	g->opts.max_host_share = max_host_share;
	g->policy.budget.max_share = unit_limit(&g->opts);
	vec_each(&g->governed, gd)
		budget_set_limit(gd->unit->budget, g->policy.budget.max_share);
}

static void governed_release(struct governed *gd)
{
	window_run_free(gd->windows);
	budget_unit_free(gd->unit);
}

void governor_free(struct governor *g)
{
	struct governed *gd;

	if (!g)
		return;
	vec_each(&g->governed, gd)
		governed_release(gd);
	vec_release(&g->governed);
	hmap_release(&g->idx);
	free(g);
}

static const uint64_t *find_idx(const struct governor *g, pid_t pid)
{
	uint32_t key = g->opts.is_one ? 0 : (uint32_t)pid;

	return hmap_get(&g->idx, &key);
}

static int add_governed(struct governor *g, pid_t pid)
{
	struct governed gd = { 0 };
	pid_t unit_pid = g->opts.is_one ? 0 : pid;
	uint32_t key = (uint32_t)unit_pid;
	int err = budget_unit_new(&g->policy, unit_pid, !g->is_paused, &gd.unit);

	if (err)
		return err == -ENOMEM ? err : 0; /* it has ended */
	gd.generation = tracker_generation(g->policy.tracker, gd.unit->pid);
	err = window_run_new(gd.unit, &gd.windows);
	if (!err)
		err = vec_push(&g->governed, gd);
	if (!err)
		err = hmap_put(&g->idx, &key, g->governed.cnt - 1);
	else
		governed_release(&gd);
	return err;
}

static int apply(struct governor *g, struct governed *gd)
{
	struct budget_unit *u = gd->unit;
	const struct budget_plan *plan = budget_plan(u->budget);
	struct engine_change change = { .rate_idx = plan->coarse, .is_alloc_only = true };

	if (g->is_paused || g->is_stopped)
		return 0;
	window_run_stop(gd->windows); /* the end of a window changes how its process is sampled */
	switch (plan->step) {
	case BUDGET_FULL:
	case BUDGET_COARSE:
		return budget_unit_see_frees(u, &change);
	case BUDGET_ALLOCS:
		return budget_unit_leave_frees(u, PROBES_ALLOCS, &change);
	case BUDGET_WINDOWS:
		g->seed = g->seed * 1664525 + 1013904223;
		return window_run_start(gd->windows, g->seed);
	case BUDGET_OUT:
		break;
	}
	return budget_unit_leave_frees(u, PROBES_NONE, &change);
}

static void log_step(struct governor *g, const struct budget_unit *u,
		     const struct governor_step *step)
{
	bool is_down = step->plan.step > step->from || step->is_kill;
	char text[GOVERNOR_WORDS_CAP];
	uint64_t cnt;

	if (!log_limit_allows(&g->log, now_ns()))
		return;
	cnt = log_limit_left_out(&g->log);
	if (cnt)
		log_warn(
			"%s: %llu more steps to keep the budget, which were too many to tell one by one",
			g->opts.command, (unsigned long long)cnt);
	governor_step_words(step, text, sizeof(text));
	log_msg(is_down ? LOG_WARN : LOG_INFO, "%s: PID %d: %s", g->opts.command,
		budget_unit_pid_at(u, 0), text);
}

/* The step is over and done with: what it means is told. */
static int take_step(struct governor *g, struct governed *gd, enum budget_step from)
{
	const struct budget_unit *u = gd->unit;
	const struct governor_step step = {
		.after_ns = u->now.time_ns - u->begin.time_ns,
		.from = from,
		.plan = *budget_plan(u->budget),
		.rate_bytes = budget_rate_bytes(g->opts.rate_bytes, budget_plan(u->budget)->coarse),
		.share = budget_share_at_step(u->budget),
		.limit = g->policy.budget.max_share * g->host_factor,
		.is_kill = budget_was_killed(u->budget),
	};
	int err = apply(g, gd);

	governor_history_add(&gd->history, &step);
	log_step(g, u, &step);
	if (err && err != -ESRCH)
		log_warn("%s: PID %d: the probes could not be changed: %s", g->opts.command, u->pid,
			 strerror(-err));
	return err == -ENOMEM ? err : 0;
}

/* Another image: nothing is known of what it needs. */
static int renew(struct governor *g, struct governed *gd)
{
	enum budget_step from = budget_plan(gd->unit->budget)->step;
	int err;

	gd->generation = tracker_generation(g->policy.tracker, gd->unit->pid);
	if (from == BUDGET_FULL) {
		gd->unit->inuse_ns = 0; /* of this one all is seen, from its first block on */
		return 0;
	}
	err = budget_unit_renew(gd->unit);
	return err ? err : take_step(g, gd, from);
}

/* Not hit since the last look, which was not long ago: most processes, most of the time. */
static bool is_quiet(const struct budget_unit *u, const struct ht_hits *hits)
{
	return budget_plan(u->budget)->step == BUDGET_FULL && hits->alloc_cnt == u->now.alloc_cnt &&
	       hits->free_cnt == u->now.free_cnt && now_ns() - u->now.time_ns < QUIET_NS;
}

static int look_at(struct governor *g, struct governed *gd, double *cost_ns)
{
	const struct tracker *t = g->policy.tracker;
	struct budget_unit *u = gd->unit;
	enum budget_step from = budget_plan(u->budget)->step;
	struct budget_reading now = u->now, diff;
	struct ht_hits hits;
	int err = tracker_read_hits(t, u->pid, &hits);

	if (!err && is_quiet(u, &hits))
		return 0;
	if (!err)
		err = budget_unit_read_clocks(u, &hits, &now);
	if (err)
		return err == -ENOMEM ? err : 0;
	diff = budget_between(&u->now, &now);
	*cost_ns += budget_unit_cost_ns(u, &diff);
	u->now = now;
	if (g->is_paused)
		return 0;
	if (u->pid && tracker_generation(t, u->pid) != gd->generation)
		return renew(g, gd);
	if (!budget_update(u->budget, &now, g->host_factor))
		return 0;
	return take_step(g, gd, from);
}

/* Processes come and go. */
static int match_governed(struct governor *g)
{
	const struct tracker *t = g->policy.tracker;
	size_t cnt = tracker_running_cnt(t);
	int err = 0;

	for (size_t i = g->governed.cnt; i-- > 0;) {
		struct governed *gd = &g->governed.data[i];
		struct governed *last = &g->governed.data[g->governed.cnt - 1];
		uint32_t key = (uint32_t)gd->unit->pid;

		gd->is_ended = gd->unit->pid ? !tracker_follows(t, gd->unit->pid) : !cnt;
		if (!gd->is_ended || g->opts.keeps_ended)
			continue;
		governed_release(gd);
		hmap_del(&g->idx, &key);
		if (gd != last) {
			*gd = *last;
			key = (uint32_t)gd->unit->pid;
			*hmap_get(&g->idx, &key) = i;
		}
		g->governed.cnt--;
	}
	for (size_t i = 0; i < cnt && !err; i++) {
		pid_t pid = tracker_running_at(t, i);

		if (!find_idx(g, pid))
			err = add_governed(g, pid);
	}
	return err;
}

static int look_at_all(struct governor *g, uint64_t now)
{
	double cost_ns = 0, host_ns;
	int err = match_governed(g);

	for (size_t i = 0; i < g->governed.cnt && !err; i++)
		if (!g->governed.data[i].is_ended)
			err = look_at(g, &g->governed.data[i], &cost_ns);
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
	err = engine_hit_ns(g->policy.engine, &ns);
	if (err == -EAGAIN)
		return;
	g->is_measured = true;
	engine_measure_hits(g->policy.engine, false);
	if (err)
		return;
	log_debug("%s: a hit costs %.0f ns, and %.0f ns in its program", g->opts.command,
		  g->opts.costs.emulated_ns, ns);
	g->opts.costs.emulated_ns += ns;
	g->opts.costs.stepped_ns += ns;
}

static bool has_windows(const struct governor *g, const struct governed *gd)
{
	return !gd->is_ended && !g->is_paused &&
	       budget_plan(gd->unit->budget)->step == BUDGET_WINDOWS;
}

int governor_work(struct governor *g)
{
	uint64_t now = now_ns();
	struct governed *gd;
	int err = 0;

	if (g->is_stopped)
		return 0;
	vec_each(&g->governed, gd)
		if (!err && has_windows(g, gd))
			err = window_run_work(gd->windows);
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
	const struct governed *gd;

	vec_each(&g->governed, gd) {
		uint64_t window_due_ns = has_windows(g, gd) ? window_run_due_ns(gd->windows) : due;

		due = window_due_ns < due ? window_due_ns : due;
	}
	return due <= now ? 0 : (int)((due - now + NS_PER_MS - 1) / NS_PER_MS);
}

int governor_pause(struct governor *g, bool pause)
{
	struct engine_change change = { .is_alloc_only = true };
	struct governed *gd;
	int first_err = match_governed(g);

	g->is_paused = pause;
	tracker_hold_probes(g->policy.tracker, pause);
	vec_each(&g->governed, gd) {
		int err;

		if (gd->is_ended)
			continue;
		window_run_stop(gd->windows);
		change.rate_idx = budget_plan(gd->unit->budget)->coarse;
		err = pause ? budget_unit_leave_frees(gd->unit, PROBES_NONE, &change) :
			      apply(g, gd);
		/* Who has ended, which is not told yet, is in nobody's way. */
		if (!first_err && err != -ESRCH)
			first_err = err;
	}
	return first_err;
}

bool governor_is_paused(const struct governor *g)
{
	return g->is_paused;
}

void governor_stop(struct governor *g)
{
	struct governed *gd;

	g->is_stopped = true;
	vec_each(&g->governed, gd)
		window_run_stop(gd->windows);
}

static void view_windows(const struct governed *gd, struct governor_view *ret)
{
	struct window_run_view view;

	window_run_view(gd->windows, &view);
	ret->duty = budget_plan(gd->unit->budget)->duty;
	ret->rate_bytes = view.rate_bytes;
	ret->slowdown = view.slowdown.value;
	ret->slowdown_low = view.slowdown.low;
	ret->slowdown_high = view.slowdown.high;
	ret->window_cnt = view.window_cnt;
	ret->spread = view.spread;
}

static void view_governed(const struct governor *g, const struct governed *gd,
			  struct governor_view *ret)
{
	const struct budget_unit *u = gd->unit;
	const struct budget_plan *plan = budget_plan(u->budget);

	*ret = (struct governor_view){
		.step = g->is_paused ? BUDGET_OUT : plan->step,
		.share = budget_share(u->budget),
		.share_overall = budget_share_overall(u->budget),
		.limit = g->policy.budget.max_share * g->host_factor,
		.rate_bytes = budget_rate_bytes(g->opts.rate_bytes, plan->coarse),
		.duty = 1,
		.slowdown = 1,
		.slowdown_low = 1,
		.slowdown_high = 1,
		.step_cnt = gd->history.step_cnt,
		.inuse_ns = u->inuse_ns,
		.has_inuse = u->has_inuse,
	};
	if (ret->step == BUDGET_OUT)
		ret->duty = 0;
	if (ret->step == BUDGET_WINDOWS)
		view_windows(gd, ret);
}

int governor_view(const struct governor *g, pid_t pid, struct governor_view *ret)
{
	const uint64_t *idx = find_idx(g, pid);

	if (!idx)
		return -ENOENT;
	view_governed(g, &g->governed.data[*idx], ret);
	return 0;
}

double governor_host_share(const struct governor *g)
{
	return g->host_share;
}

int governor_comment(const struct governor *g, pid_t pid, struct profile *p)
{
	const struct governed *gd;
	int err = governor_comment_limit(p, g->opts.max_share, g->opts.max_host_share);

	vec_each(&g->governed, gd) {
		const struct budget_unit *u = gd->unit;
		struct governor_view view;

		if (err || (pid && u->pid && u->pid != pid))
			continue;
		view_governed(g, gd, &view);
		err = governor_comment_unit(p, pid || g->governed.cnt == 1 ? 0 : u->pid, &view,
					    &gd->history, u->begin.time_ns);
	}
	return err;
}

void governor_take_record(const struct governor *g, pid_t pid, struct governor_record *ret)
{
	const uint64_t *idx = find_idx(g, pid);
	const struct governed *gd;

	memset(ret, 0, sizeof(*ret));
	if (!idx)
		return;
	gd = &g->governed.data[*idx];
	ret->is_known = true;
	view_governed(g, gd, &ret->view);
	ret->history = gd->history;
	ret->followed_ns = gd->unit->begin.time_ns;
}

int governor_comment_record(const struct governor *g, const struct governor_record *r,
			    struct profile *p)
{
	int err = governor_comment_limit(p, g->opts.max_share, g->opts.max_host_share);

	if (!err && r->is_known)
		err = governor_comment_unit(p, 0, &r->view, &r->history, r->followed_ns);
	return err;
}
