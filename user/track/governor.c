/* SPDX-License-Identifier: MIT */
/*
 * governor.c - see governor.h.
 *
 * This file has the steps: which processes have a budget, the looks at its use, and what each step
 * asks of the probes. budget_unit.c detaches and attaches them.
 */
#include "track/governor.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hmap.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/vec.h"
#include "kernel/engine.h"
#include "track/budget.h"
#include "track/governor_priv.h"
#include "track/tracker.h"

#define QUIET_NS NS_PER_S
#define MEASURED_CNT 4
/* When many processes come and go, nearly each may need its step. */
#define LOG_BURST 60
#define LOG_EVERY_NS (2 * NS_PER_S)
/* A tap stops its process for up to 0.2 s even if it fails. */
#define RETRY_NS NS_PER_S
#define RETRY_MAX_NS (64 * NS_PER_S)

/* A unit that has a budget. */
struct governed {
	struct budget_unit *unit;
	uint32_t generation; /* image that the budget is for */
	bool is_ended;
	bool is_tap_tried; /* of this image */
	bool is_advised; /* its user knows how to measure what is given up */
	/* Time of the next try to put the plan into effect; 0: it is in effect */
	uint64_t retry_ns;
	uint64_t retry_after_ns; /* last wait for that */
	struct governor_history history; /* steps taken */
};

struct governor {
	struct governor_options opts;
	struct unit_policy policy;
	VEC(struct governed) governed;
	struct hmap idx; /* pid -> index in governed */
	uint64_t due_ns; /* time of the next look at all */
	uint64_t host_ns; /* start of the sum host_cost_ns */
	double host_cost_ns;
	double host_factor, host_share;
	bool is_paused, is_stopped, is_measured, is_auto_rate;
	struct auto_rate rate;
	unsigned int measured_cnt; /* up to MEASURED_CNT */
	double measured_ns; /* minimum of these */
	struct log_limit log; /* for steps */
};

struct recording_limit governor_limit(double percent, bool is_strict)
{
	if (percent <= 0)
		return BUDGET_NO_LIMIT;
	return (struct recording_limit){ percent / 100, is_strict ? 0 : GOVERNOR_FLOOR };
}

/* The host's limit is kept by reducing the processes' limits. */
static struct recording_limit unit_limit(const struct governor_options *opts)
{
	if (budget_has_limit(&opts->limit) || opts->max_host_share <= 0)
		return opts->limit;
	return (struct recording_limit){ 1, 1 };
}

/*
 * The automatic rate becomes coarser at once when many samples come at once. It becomes finer only after a
 * quiet time, because a burst meets the rate of the quiet before it: at 4 KiB a block of 1 KiB is
 * kept one time in five, for an interval or two.
 */

#define RECENT_NS (3.0 * NS_PER_S)
/* Time to a finer rate: from the beginning, because until then samples weigh much, and from the last change. */
#define FIRST_LOOK_NS (300 * NS_PER_MS)
#define LOOK_NS (1 * NS_PER_S)
#define CALM_NS (5 * NS_PER_S) /* from a burst to a finer rate */
#define BURST 4 /* times AUTO_RATE_PER_S, in one interval */

void auto_rate_begin(struct auto_rate *a, uint64_t now_ns)
{
	memset(a, 0, sizeof(*a));
	a->rate_bytes = AUTO_RATE_USUAL;
	a->begin_ns = a->seen_ns = a->changed_ns = now_ns;
}

static double target_per_s(const struct auto_rate *a)
{
	double part = fmax(1, (double)a->sample_cnt / AUTO_RATE_PLENTY);

	return AUTO_RATE_PER_S / (part * part);
}

/* The finest power of two that keeps the target, given per_s samples at the present rate. */
static uint64_t wanted(const struct auto_rate *a, double per_s)
{
	double bytes = (double)a->rate_bytes * per_s / target_per_s(a);
	uint64_t rate_bytes = AUTO_RATE_FINEST;

	while (rate_bytes < AUTO_RATE_USUAL && (double)rate_bytes < bytes)
		rate_bytes *= 2;
	return rate_bytes;
}

static bool change(struct auto_rate *a, uint64_t now_ns, uint64_t rate_bytes)
{
	if (rate_bytes == a->rate_bytes)
		return false;
	a->cnt *= (double)a->rate_bytes / (double)rate_bytes;
	a->rate_bytes = rate_bytes;
	a->changed_ns = now_ns;
	return true;
}

bool auto_rate_update(struct auto_rate *a, uint64_t now_ns, uint64_t sample_cnt, bool may_be_fine)
{
	double ns = (double)(now_ns - a->seen_ns);
	double cnt = sample_cnt > a->sample_cnt ? (double)(sample_cnt - a->sample_cnt) : 0;
	double keep = exp(-ns / RECENT_NS), per_s;
	uint64_t rate_bytes, look_ns;

	if (ns <= 0)
		return false;
	a->ns_per_byte += ns / (double)a->rate_bytes;
	a->seen_ns = now_ns;
	a->sample_cnt = sample_cnt;
	a->cnt = a->cnt * keep + cnt;
	a->wall_ns = a->wall_ns * keep + ns;
	if (!may_be_fine)
		return change(a, now_ns, AUTO_RATE_USUAL);
	per_s = cnt / ns * NS_PER_S;
	if (per_s > BURST * AUTO_RATE_PER_S) {
		a->burst_ns = now_ns;
		return change(a, now_ns, wanted(a, per_s));
	}
	per_s = a->cnt / a->wall_ns * NS_PER_S;
	rate_bytes = wanted(a, per_s);
	look_ns = a->changed_ns == a->begin_ns ? FIRST_LOOK_NS : LOOK_NS;
	if (rate_bytes < a->rate_bytes &&
	    (now_ns - a->changed_ns < look_ns || (a->burst_ns && now_ns - a->burst_ns < CALM_NS)))
		return false;
	/* Do not go back and forth: a small excess changes nothing. */
	if (rate_bytes > a->rate_bytes && per_s < 1.5 * target_per_s(a))
		return false;
	return change(a, now_ns, rate_bytes);
}

uint64_t auto_rate_mean(const struct auto_rate *a)
{
	double ns = (double)(a->seen_ns - a->begin_ns);

	return a->ns_per_byte > 0 ? (uint64_t)llround(ns / a->ns_per_byte) : a->rate_bytes;
}

int governor_new(struct engine *e, struct tracker *t, const struct governor_options *opts,
		 struct governor **ret)
{
	struct governor *g = calloc(1, sizeof(*g));
	int err = 0;

	if (!g)
		return -ENOMEM;
	g->opts = *opts;
	g->is_auto_rate = !opts->rate_bytes;
	auto_rate_begin(&g->rate, now_ns());
	if (g->is_auto_rate)
		g->opts.rate_bytes = g->rate.rate_bytes;
	g->log = (struct log_limit){ .every_ns = LOG_EVERY_NS, .burst = LOG_BURST };
	g->policy = (struct unit_policy){
		.engine = e,
		.tracker = t,
		.budget = {
			.limit = unit_limit(opts),
			.rate_bytes = g->opts.rate_bytes,
			.costs = &g->opts.costs,
		},
	};
	g->host_factor = 1;
	hmap_init(&g->idx, sizeof(uint32_t));
	/* The limit of throwing functions is set with the first table's. */
	for (uint32_t i = 1; i <= BUDGET_COARSE_CAP && !err; i++)
		err = engine_set_rate(e, i, budget_rate_bytes(g->opts.rate_bytes, i), 0);
	g->is_measured = engine_measure_hits(e, true) != 0;
	if (err)
		governor_free(g);
	else
		*ret = g;
	return err;
}

void governor_set_limits(struct governor *g, const struct recording_limit *limit,
			 double max_host_share)
{
	struct governed *gd;

	g->opts.limit = *limit;
	g->opts.max_host_share = max_host_share;
	g->policy.budget.limit = unit_limit(&g->opts);
	vec_each(&g->governed, gd)
		budget_set_limit(gd->unit->budget, &g->policy.budget.limit);
}

void governor_free(struct governor *g)
{
	struct governed *gd;

	if (!g)
		return;
	vec_each(&g->governed, gd)
		budget_unit_free(gd->unit);
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
	err = vec_push(&g->governed, gd);
	if (!err)
		err = hmap_put(&g->idx, &key, g->governed.cnt - 1);
	else
		budget_unit_free(gd.unit);
	return err;
}

static int apply_plan(struct budget_unit *u)
{
	const struct budget_plan *plan = budget_plan(u->budget);
	struct engine_change change = { .rate_idx = plan->coarse, .is_alloc_only = true };

	switch (plan->step) {
	case BUDGET_FULL:
	case BUDGET_COARSE:
		return budget_unit_track_frees(u, &change);
	case BUDGET_ALLOCS:
		return budget_unit_untrack_frees(u, PROBES_ALLOCS, &change);
	case BUDGET_OFF:
		break;
	}
	return budget_unit_untrack_frees(u, PROBES_NONE, &change);
}

/* A process that does not get a CPU cannot be tapped now, but in a moment: retry. */
static int apply(struct governor *g, struct governed *gd)
{
	int err = g->is_paused || g->is_stopped ? 0 : apply_plan(gd->unit);

	if (!err || err == -ESRCH) {
		gd->retry_ns = gd->retry_after_ns = 0;
		return err;
	}
	gd->retry_after_ns = gd->retry_after_ns ? 2 * gd->retry_after_ns : RETRY_NS;
	if (gd->retry_after_ns > RETRY_MAX_NS)
		gd->retry_after_ns = RETRY_MAX_NS;
	gd->retry_ns = now_ns() + gd->retry_after_ns;
	return err;
}

/* The advice is given once. */
static void log_step(struct governor *g, struct governed *gd, const struct governor_step *step)
{
	const bool is_unknown = step->plan.step >= BUDGET_ALLOCS;
	char text[GOVERNOR_TEXT_CAP];
	uint64_t cnt;

	if (!log_limit_allows(&g->log, now_ns()))
		return;
	cnt = log_limit_left_out(&g->log);
	if (cnt)
		log_warn("%s: %llu more steps to keep the overhead limit are not listed",
			 g->opts.command, (unsigned long long)cnt);
	governor_step_words(step, !gd->is_advised, text, sizeof(text));
	gd->is_advised |= is_unknown && governor_step_is_down(step);
	log_msg(governor_step_is_down(step) ? LOG_WARN : LOG_INFO, "%s: PID %d: %s",
		g->opts.command, step->pid, text);
}

/* Apply the plan; hits until the probes were in or out count as cost. */
static int put_into_effect(struct governor *g, struct governed *gd)
{
	struct budget_unit *u = gd->unit;
	int err = apply(g, gd);

	if (!err)
		err = budget_unit_read(u, &u->now);
	if (!err)
		budget_applied(u->budget, &u->now);
	return err;
}

static int take_step(struct governor *g, struct governed *gd, const struct budget_plan *from)
{
	const struct budget_unit *u = gd->unit;
	const struct budget_plan *plan = budget_plan(u->budget);
	const struct governor_step step = {
		.pid = budget_unit_pid_at(u, 0),
		.program_argv = g->opts.program_argv,
		.follows_children = g->opts.is_one,
		.after_ns = u->now.time_ns - u->begin.time_ns,
		.from = { from->is_trial ? BUDGET_OFF : from->step, from->coarse, false },
		.plan = *plan,
		.is_tap_refused = gd->is_tap_tried,
		.rate_bytes = budget_rate_bytes(g->opts.rate_bytes, plan->coarse),
		.base_rate_bytes = g->opts.rate_bytes,
		.verdict = *budget_verdict(u->budget),
	};
	bool is_told = !plan->is_trial && !(from->is_trial && plan->step == BUDGET_OFF);
	int err = put_into_effect(g, gd);

	if (is_told) {
		governor_history_add(&gd->history, &step);
		log_step(g, gd, &step);
	} else {
		log_debug("%s: PID %d: a trial %s", g->opts.command, step.pid,
			  plan->is_trial ? "begins" : "has failed");
	}
	if (err && err != -ESRCH)
		log_warn("%s: PID %d: cannot change the probes: %s", g->opts.command, step.pid,
			 strerror(-err));
	return err == -ENOMEM ? err : 0;
}

static int retry(struct governor *g, struct governed *gd)
{
	int err;

	if (!gd->retry_ns || g->is_paused || now_ns() < gd->retry_ns)
		return 0;
	err = put_into_effect(g, gd);
	if (!err)
		log_info("%s: PID %d: the probes are changed now", g->opts.command,
			 budget_unit_pid_at(gd->unit, 0));
	return err == -ENOMEM ? err : 0;
}

/* Another image, whose needs are not known. */
static int renew(struct governor *g, struct governed *gd)
{
	const struct budget_plan from = *budget_plan(gd->unit->budget);
	int err;

	gd->generation = tracker_generation(g->policy.tracker, gd->unit->pid);
	gd->is_tap_tried = false;
	if (from.step == BUDGET_FULL) {
		gd->unit->inuse_ns = 0; /* this image was seen from its first block on */
		return 0;
	}
	err = budget_unit_renew(gd->unit);
	return err ? err : put_into_effect(g, gd);
}

/* No hits since the last look, which was recent: most processes, most of the time. */
static bool is_quiet(const struct budget_unit *u, const struct ht_hits *hits)
{
	return budget_plan(u->budget)->step == BUDGET_FULL && hits->alloc_cnt == u->now.alloc_cnt &&
	       hits->free_cnt == u->now.free_cnt && now_ns() - u->now.time_ns < QUIET_NS;
}

/* Is the tap better than the step that the budget takes, or than the probes as they are? */
static bool wants_tap(const struct governor *g, const struct governed *gd,
		      const struct budget_plan *from)
{
	const struct budget *b = gd->unit->budget;

	if (gd->is_tap_tried || from->step >= BUDGET_ALLOCS || !budget_has_limit(budget_limit(b)) ||
	    !tracker_may_tap(g->policy.tracker, gd->unit->pid))
		return false;
	return budget_plan(b)->step >= BUDGET_ALLOCS ||
	       (g->opts.tap_share > 0 && budget_costs(b, g->opts.tap_share));
}

static int try_tap(struct governor *g, struct governed *gd, const struct budget_plan *from)
{
	struct budget_unit *u = gd->unit;
	const struct governor_step step = {
		.pid = budget_unit_pid_at(u, 0),
		.after_ns = u->now.time_ns - u->begin.time_ns,
		.from = *from,
		.is_tap = true,
		.verdict = { .before = budget_now(u->budget) },
	};
	int err = budget_unit_tap(u);

	gd->is_tap_tried = true;
	if (!err)
		err = budget_unit_read(u, &u->now);
	if (err)
		return err;
	budget_restart(u->budget);
	budget_applied(u->budget, &u->now);
	governor_history_add(&gd->history, &step);
	log_step(g, gd, &step);
	return 0;
}

static int look_at(struct governor *g, struct governed *gd, double *cost_ns)
{
	const struct tracker *t = g->policy.tracker;
	struct budget_unit *u = gd->unit;
	const struct budget_plan from = *budget_plan(u->budget);
	struct budget_reading now = u->now, diff;
	struct ht_hits hits;
	bool has_step;
	int err = retry(g, gd);

	if (!err)
		err = tracker_read_hits(t, u->pid, &hits);
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
	/* A tapped process costs only samples, so only fewer of them can be given up. */
	budget_hold(u->budget, tracker_is_tapped(t, u->pid));
	has_step = budget_update(u->budget, &now, g->host_factor);
	if (wants_tap(g, gd, &from) && !try_tap(g, gd, &from))
		return 0;
	if (!has_step) {
		tracker_limit_tap(g->policy.tracker, u->pid, budget_limit(u->budget));
		return 0;
	}
	return take_step(g, gd, &from);
}

/* Add new processes, and remove ended ones. */
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
		budget_unit_free(gd->unit);
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

static int set_rate(struct governor *g, uint64_t rate_bytes)
{
	struct governed *gd;
	int err = 0;

	log_debug("%s: one sample per %llu bytes from now on", g->opts.command,
		  (unsigned long long)rate_bytes);
	g->opts.rate_bytes = g->policy.budget.rate_bytes = rate_bytes;
	vec_each(&g->governed, gd)
		budget_set_rate(gd->unit->budget, rate_bytes);
	for (uint32_t i = 0; i <= BUDGET_COARSE_CAP && !err; i++)
		err = engine_change_rate(g->policy.engine, i, budget_rate_bytes(rate_bytes, i));
	return err;
}

static int adjust_rate(struct governor *g, uint64_t now)
{
	uint64_t sample_cnt = 0;
	bool may_be_fine = true;
	const struct governed *gd;

	vec_each(&g->governed, gd) {
		sample_cnt += gd->unit->now.sample_cnt - gd->unit->begin.sample_cnt;
		may_be_fine &= gd->is_ended || budget_plan(gd->unit->budget)->step == BUDGET_FULL;
	}
	if (!auto_rate_update(&g->rate, now, sample_cnt, may_be_fine))
		return 0;
	return set_rate(g, g->rate.rate_bytes);
}

uint64_t governor_rate_bytes(const struct governor *g)
{
	return g->is_auto_rate ? auto_rate_mean(&g->rate) : g->opts.rate_bytes;
}

/*
 * Calibration uses an empty program. What the real programs add is measured over the first hits.
 * This is wall time: if a program had to wait for a CPU meanwhile, a hundred hits seem to take many
 * times as long. So the minimum of some measurements counts.
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
	if (!err && (!g->measured_cnt || ns < g->measured_ns))
		g->measured_ns = ns;
	if (!err && ++g->measured_cnt < MEASURED_CNT)
		return;
	g->is_measured = true;
	engine_measure_hits(g->policy.engine, false);
	if (!g->measured_cnt)
		return;
	log_debug("%s: a hit costs %.0f ns, and %.0f ns in its program", g->opts.command,
		  g->opts.costs.emulated_ns, g->measured_ns);
	g->opts.costs.emulated_ns += g->measured_ns;
	g->opts.costs.stepped_ns += g->measured_ns;
}

int governor_work(struct governor *g)
{
	uint64_t now = now_ns();
	int err;

	if (g->is_stopped || now < g->due_ns)
		return 0;
	g->due_ns = now + BUDGET_INTERVAL_NS;
	measure_programs(g);
	err = look_at_all(g, now);
	return err || !g->is_auto_rate ? err : adjust_rate(g, now);
}

int governor_wait_ms(const struct governor *g)
{
	uint64_t now = now_ns(), due = g->due_ns;

	return due <= now ? 0 : (int)((due - now + NS_PER_MS - 1) / NS_PER_MS);
}

int governor_pause(struct governor *g, bool pause)
{
	struct engine_change change = { .is_alloc_only = true };
	struct governed *gd;
	int first_err = match_governed(g);

	g->is_paused = pause;
	probes_pause_attaching(tracker_probes(g->policy.tracker), pause);
	vec_each(&g->governed, gd) {
		int err;

		if (loop_is_told_to_end()) /* then all is taken out */
			break;
		if (gd->is_ended)
			continue;
		change.rate_idx = budget_plan(gd->unit->budget)->coarse;
		err = pause ? budget_unit_untrack_frees(gd->unit, PROBES_NONE, &change) :
			      apply(g, gd);
		/* A process that has ended unnoticed does no harm. */
		if (!first_err && err != -ESRCH)
			first_err = err;
	}
	return first_err;
}

void governor_resume_after_stop(struct governor *g, const char *who)
{
	int err;

	if (g->is_paused)
		return;
	log_warn("%s: heaptap was stopped (Ctrl-Z, SIGSTOP), and its probes were removed for that "
		 "time; heap in use counts from now",
		 who);
	err = governor_pause(g, true);
	if (!err)
		err = governor_pause(g, false);
	if (err)
		log_warn("%s: cannot reattach some probes: %s", who, strerror(-err));
}

bool governor_is_paused(const struct governor *g)
{
	return g->is_paused;
}

void governor_stop(struct governor *g)
{
	g->is_stopped = true;
}

void governor_end(struct governor *g)
{
	struct governed *gd;

	vec_each(&g->governed, gd) {
		struct budget_unit *u = gd->unit;

		/* An ended process cannot be read any more. */
		if (!gd->is_ended && !budget_unit_read(u, &u->now))
			budget_end(u->budget, &u->now);
	}
}

static void view_governed(const struct governor *g, const struct governed *gd,
			  struct governor_view *ret)
{
	const struct budget_unit *u = gd->unit;
	const struct budget_plan *plan = budget_plan(u->budget);
	bool has_costs = g->opts.costs.emulated_ns > 0;

	*ret = (struct governor_view){
		.step = g->is_paused || plan->is_trial ? BUDGET_OFF : plan->step,
		.now = budget_now(u->budget),
		.overall = has_costs ? budget_overall(u->budget) : BUDGET_PRICE_UNKNOWN,
		.settled = has_costs ? budget_settled(u->budget) : BUDGET_PRICE_UNKNOWN,
		.cpu_ns = (double)(u->now.cpu_ns - u->begin.cpu_ns),
		.full = budget_full(u->budget),
		.limit = budget_limit_in_force(u->budget),
		.rate_bytes = budget_rate_bytes(g->opts.rate_bytes, plan->coarse),
		.step_cnt = gd->history.step_cnt,
		.inuse_ns = u->inuse_ns,
		.has_inuse = u->has_inuse,
		.watched_ns = budget_unit_watched_ns(u),
		.was_always_recorded = u->was_always_recorded,
	};
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

static void take_record(const struct governor *g, const struct governed *gd,
			struct governor_record *ret)
{
	ret->is_known = true;
	view_governed(g, gd, &ret->view);
	ret->history = gd->history;
	ret->followed_ns = gd->unit->begin.time_ns;
	ret->pid = gd->unit->pid;
}

void governor_take_record(const struct governor *g, pid_t pid, struct governor_record *ret)
{
	const uint64_t *idx = find_idx(g, pid);

	memset(ret, 0, sizeof(*ret));
	if (idx)
		take_record(g, &g->governed.data[*idx], ret);
}

int governor_comment(const struct governor *g, pid_t pid, struct profile *p)
{
	const struct governed *gd;
	int err = 0;

	vec_each(&g->governed, gd) {
		const struct budget_unit *u = gd->unit;
		struct governor_record record;

		if (err || (pid && u->pid && u->pid != pid))
			continue;
		take_record(g, gd, &record);
		err = governor_comment_unit(p, pid || g->governed.cnt == 1 ? 0 : u->pid, &record);
	}
	return err;
}

int governor_comment_record(const struct governor_record *r, struct profile *p)
{
	return r->is_known ? governor_comment_unit(p, 0, r) : 0;
}

void governor_tally_add(struct governor_tally *t, const struct governor_view *v)
{
	if (isnan(v->overall.cpu_share) && v->cpu_ns > 0)
		t->is_cost_unknown = true;
	else if (v->cpu_ns > 0)
		t->cost_ns += v->overall.cpu_share * v->cpu_ns;
	t->overhead_one_cpu = v->overall.one_cpu;
	t->cpu_ns += v->cpu_ns;
	/* The limit is one for each process, so the most expensive one tells which limit would
	 * do. */
	if (v->full.cpu_share > t->full_share) {
		t->full_share = v->full.cpu_share;
		t->full_one_cpu = v->full.one_cpu;
	}
	t->limit.cpu_share = fmax(t->limit.cpu_share, v->limit.cpu_share);
	t->limit.one_cpu = fmax(t->limit.one_cpu, v->limit.one_cpu);
	if (!v->has_inuse)
		t->unknown_cnt++;
	else if (v->inuse_ns > t->inuse_ns)
		t->inuse_ns = v->inuse_ns;
	if (!t->cnt || v->watched_ns < t->watched_ns)
		t->watched_ns = v->watched_ns;
	if (!v->was_always_recorded)
		t->was_not_always_recorded = true;
	t->cnt++;
}

void governor_tally_fill(const struct governor_tally *t, int64_t epoch_off_ns, struct recording *r)
{
	bool has_cost = t->cpu_ns > 0 && !t->is_cost_unknown;
	int64_t watched_ns = (int64_t)t->watched_ns;

	r->overhead_share = has_cost ? t->cost_ns / t->cpu_ns : NAN;
	r->overhead_one_cpu = has_cost && t->cnt == 1 ? t->overhead_one_cpu : NAN;
	r->full_share = t->full_share > 0 ? t->full_share : NAN;
	r->full_one_cpu = t->full_share > 0 ? t->full_one_cpu : NAN;
	r->limit = t->limit;
	r->inuse = RECORDING_INUSE_ALL;
	r->inuse_since_ns = 0;
	if (t->cnt && t->unknown_cnt == t->cnt) {
		r->inuse = RECORDING_INUSE_UNKNOWN;
	} else if (t->inuse_ns) {
		r->inuse = RECORDING_INUSE_SINCE;
		r->inuse_since_ns = (int64_t)t->inuse_ns + epoch_off_ns;
	}
	if (t->unknown_cnt)
		r->is_lossy = true;
	r->watched_ns = r->duration_ns;
	if (t->was_not_always_recorded && watched_ns < r->duration_ns)
		r->watched_ns = watched_ns;
}

void governor_fill_recording(const struct governor *g, pid_t pid, int64_t epoch_off_ns,
			     struct recording *r)
{
	struct governor_tally tally = { 0 };
	const struct governed *gd;

	vec_each(&g->governed, gd) {
		struct governor_view view;

		if (pid && gd->unit->pid && gd->unit->pid != pid)
			continue;
		view_governed(g, gd, &view);
		governor_tally_add(&tally, &view);
	}
	if (!tally.cnt)
		tally.limit = g->policy.budget.limit;
	governor_tally_fill(&tally, epoch_off_ns, r);
}

void governor_fill_recording_of(const struct governor_record *of, int64_t epoch_off_ns,
				struct recording *r)
{
	struct governor_tally tally = { 0 };

	if (of->is_known)
		governor_tally_add(&tally, &of->view);
	governor_tally_fill(&tally, epoch_off_ns, r);
}
