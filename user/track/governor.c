/* SPDX-License-Identifier: MIT */
/*
 * governor.c - keeps the probes of tracked processes within the overhead limit: measures their cost, and takes the
 * steps that budget.c chooses (see governor.h).
 *
 * A unit is the set of processes that have one budget. A step makes its probes detach, attach or sample more coarsely.
 */
#include "track/governor.h"

#include "base/loop.h"
#include "kernel/engine.h"
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

/*
 * Frees are given up and seen again in such an order that a sample whose free may have gone unseen
 * is never counted as in use. On the way down, allocations first go into the sums only (in BPF),
 * then the free probes go, then live samples are dropped. On the way up, the free probes come
 * first.
 */

/* NULL is fine. */
static void budget_unit_free(struct budget_unit *u)
{
	if (!u)
		return;
	budget_free(u->budget);
	free(u);
}

/* Another image: start a new budget at the last reading, with no knowledge of the old image. -ENOMEM. */
static int budget_unit_renew(struct budget_unit *u)
{
	struct budget *fresh;
	int err = budget_new(&u->policy->budget, &u->now, &fresh);

	if (err)
		return err;
	budget_free(u->budget);
	u->budget = fresh;
	u->begin = u->now;
	u->inuse_ns = 0; /* belonged to the old image */
	u->watched_ns = 0;
	u->watched_since_ns = u->watched_since_ns ? u->now.time_ns : 0;
	u->was_always_recorded = u->watched_since_ns;
	return 0;
}

static size_t pid_cnt(const struct budget_unit *u)
{
	return u->pid ? 1 : tracker_running_cnt(u->policy->tracker);
}

/* Its running processes. */
static pid_t budget_unit_pid_at(const struct budget_unit *u, size_t i)
{
	return u->pid ? u->pid : tracker_running_at(u->policy->tracker, i);
}

/* Sum over all running processes; the time of ended ones stays in it. */
static int read_cpu(struct budget_unit *u, uint64_t *ret_ns)
{
	uint64_t sum = 0, ns;

	if (u->pid)
		return tracker_read_cpu(u->policy->tracker, u->pid, ret_ns);
	for (size_t i = 0; i < pid_cnt(u); i++)
		if (!tracker_read_cpu(u->policy->tracker, budget_unit_pid_at(u, i), &ns))
			sum += ns;
	/* An ended process takes its time out of the sum; add that to ended_cpu_ns. */
	if (sum + u->ended_cpu_ns < u->now.cpu_ns)
		u->ended_cpu_ns = u->now.cpu_ns - sum;
	*ret_ns = sum + u->ended_cpu_ns;
	return 0;
}

/* The same, with hits that were just read. */
static int budget_unit_read_clocks(struct budget_unit *u, const struct ht_hits *hits,
				   struct budget_reading *ret)
{
	int err = read_cpu(u, &ret->cpu_ns);

	if (err)
		return err;
	ret->time_ns = now_ns();
	budget_reading_set_hits(ret, hits);
	return 0;
}

/* Read now. The caller sets u->now. */
static int budget_unit_read(struct budget_unit *u, struct budget_reading *ret)
{
	struct ht_hits hits;
	int err = tracker_read_hits(u->policy->tracker, u->pid, &hits);

	return err ? err : budget_unit_read_clocks(u, &hits, ret);
}

/* Cost of its probes between two readings; at most its CPU time. */
static double budget_unit_cost_ns(const struct budget_unit *u, const struct budget_reading *diff)
{
	return fmin(budget_cost_ns(u->policy->budget.costs, diff), (double)diff->cpu_ns);
}

/* Change how it is sampled. An ended process is no error. */
static int change_unit(const struct budget_unit *u, const struct engine_change *change)
{
	int err = 0;

	for (size_t i = 0; i < pid_cnt(u) && !err; i++)
		err = engine_change_target(u->policy->engine, budget_unit_pid_at(u, i), change);
	return err == -ENOENT ? 0 : err;
}

static int drop_live(struct budget_unit *u)
{
	int err = 0;

	u->has_inuse = false;
	for (size_t i = 0; i < pid_cnt(u) && !err; i++) {
		pid_t pid = budget_unit_pid_at(u, i);

		err = engine_drop_live(u->policy->engine, pid,
				       tracker_generation(u->policy->tracker, pid), NULL);
	}
	return err;
}

/* Attach and detach so that the probes of `kept` are in. */
static int keep_probes(struct budget_unit *u, enum probes_kept kept)
{
	bool is_watched;
	uint64_t now;
	int err;

	/* An old probe that is still in when the new one comes would see the same hits. */
	if (kept < u->kept)
		tracker_wait_detached(u->policy->tracker, u->gone_ticket);
	u->kept = kept;
	err = tracker_keep_probes(u->policy->tracker, u->pid, kept, &u->gone_ticket);
	is_watched = !err && kept != PROBES_NONE;
	now = now_ns();
	if (!is_watched)
		u->watched_ns = budget_unit_watched_ns(u);
	if (!is_watched || !u->watched_since_ns)
		u->watched_since_ns = is_watched ? now : 0;
	u->was_always_recorded = u->was_always_recorded && is_watched;
	return err;
}

/* See every block that is allocated from now on until it is freed. Also sets change->is_alloc_only. */
static int budget_unit_track_frees(struct budget_unit *u, struct engine_change *change)
{
	int err = 0;

	change->is_alloc_only = false;
	if (!u->has_inuse) {
		err = keep_probes(u, PROBES_ALL);
		if (err)
			return err;
		u->inuse_ns = now_ns();
		u->has_inuse = true;
	}
	return change_unit(u, change);
}

/* Stop seeing frees, and drop its live samples. Probes of `kept` stay; the others are detached without waiting. */
static int budget_unit_untrack_frees(struct budget_unit *u, enum probes_kept kept,
				     const struct engine_change *change)
{
	int err = change_unit(u, change);

	if (!err)
		err = keep_probes(u, kept);
	if (!err && u->has_inuse)
		err = drop_live(u);
	return err;
}

/* Tap its processes instead of probing them (tracker_tap()). What they have in use stays known, or counts from now where there
 * is no room for it. After an error it is as before. */
static int budget_unit_tap(struct budget_unit *u)
{
	struct engine_change change = { .rate_idx = budget_plan(u->budget)->coarse,
					.is_alloc_only = true };
	bool keeps_inuse = true;
	int err = tracker_prepare_tap(u->policy->tracker, u->pid), change_err;

	if (err)
		return err;
	err = change_unit(u, &change);
	if (!err)
		err = tracker_tap(u->policy->tracker, u->pid, &keeps_inuse);
	change.rate_idx = err ? change.rate_idx : 0;
	if (!err && !keeps_inuse) {
		err = drop_live(u);
		u->inuse_ns = now_ns();
		u->has_inuse = true;
	}
	change.is_alloc_only = false;
	change_err = change_unit(u, &change);
	if (!u->pid && !change_err) { /* children that were forked meanwhile have a copy of it */
		engine_events_drain(u->policy->engine);
		change_err = change_unit(u, &change);
	}
	return err ? err : change_err;
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

const uint64_t *governor_idx(const struct governor *g, pid_t pid)
{
	uint32_t key = g->opts.is_one ? 0 : (uint32_t)pid;

	return hmap_get(&g->idx, &key);
}

/* Make a unit with a first reading; its budget counts since the process is followed. policy must
 * outlive it. is_watched: its probes are in. -ENOMEM, or why it cannot be read: it has ended. */
static int budget_unit_new(const struct unit_policy *policy, pid_t pid, bool is_watched,
			   struct budget_unit **ret)
{
	struct budget_unit *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return -ENOMEM;
	u->policy = policy;
	u->pid = pid;
	u->kept = is_watched ? PROBES_ALL : PROBES_NONE;
	u->has_inuse = is_watched;
	/* CPU time and hits of a process are counted from then on. */
	u->now.time_ns = tracker_followed_ns(policy->tracker, pid);
	u->watched_since_ns = is_watched ? u->now.time_ns : 0;
	u->was_always_recorded = is_watched;
	err = budget_unit_renew(u);
	if (!err)
		err = budget_unit_read(u, &u->now);
	if (err)
		budget_unit_free(u);
	else
		*ret = u;
	return err;
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

static void add_to_history(struct governor_history *h, const struct governor_step *step)
{
	h->step_cnt++;
	if (h->cnt == GOVERNOR_HISTORY_CAP)
		memmove(&h->step[1], &h->step[2], (--h->cnt - 1) * sizeof(h->step[0]));
	h->step[h->cnt++] = *step;
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
		add_to_history(&gd->history, &step);
		governor_log_step(g, gd, &step);
	} else {
		log_debug("%s: PID %d: a trial %s", g->opts.command, step.pid,
			  plan->is_trial ? "begins" : "has failed");
	}
	if (err && err != -ESRCH && err != -EPIPE) /* the guardian's end has its own line */
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
	add_to_history(&gd->history, &step);
	governor_log_step(g, gd, &step);
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

		if (!governor_idx(g, pid))
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
	log_debug("%s: a probe hit costs %.0f ns, and %.0f ns more in its BPF program",
		  g->opts.command, g->opts.costs.emulated_ns, g->measured_ns);
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
	if (err && err != -EPIPE)
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

double governor_host_share(const struct governor *g)
{
	return g->host_share;
}
