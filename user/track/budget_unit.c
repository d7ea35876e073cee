/* SPDX-License-Identifier: MIT */
/*
 * budget_unit.c - see governor_priv.h.
 *
 * Frees are given up and seen again in such an order that a sample whose free may have gone unseen
 * is never counted as in use. On the way down, allocations first go into the sums only (in BPF),
 * then the free probes go, then live samples are dropped. On the way up, the free probes come
 * first.
 */
#include "track/governor_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "kernel/engine.h"
#include "track/tracker.h"

int budget_unit_new(const struct unit_policy *policy, pid_t pid, bool is_watched,
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

void budget_unit_free(struct budget_unit *u)
{
	if (!u)
		return;
	budget_free(u->budget);
	free(u);
}

int budget_unit_renew(struct budget_unit *u)
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

pid_t budget_unit_pid_at(const struct budget_unit *u, size_t i)
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

int budget_unit_read_clocks(struct budget_unit *u, const struct ht_hits *hits,
			    struct budget_reading *ret)
{
	int err = read_cpu(u, &ret->cpu_ns);

	if (err)
		return err;
	ret->time_ns = now_ns();
	budget_reading_set_hits(ret, hits);
	return 0;
}

int budget_unit_read(struct budget_unit *u, struct budget_reading *ret)
{
	struct ht_hits hits;
	int err = tracker_read_hits(u->policy->tracker, u->pid, &hits);

	return err ? err : budget_unit_read_clocks(u, &hits, ret);
}

double budget_unit_cost_ns(const struct budget_unit *u, const struct budget_reading *diff)
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

uint64_t budget_unit_watched_ns(const struct budget_unit *u)
{
	return u->watched_ns + (u->watched_since_ns ? now_ns() - u->watched_since_ns : 0);
}

int budget_unit_track_frees(struct budget_unit *u, struct engine_change *change)
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

int budget_unit_untrack_frees(struct budget_unit *u, enum probes_kept kept,
			      const struct engine_change *change)
{
	int err = change_unit(u, change);

	if (!err)
		err = keep_probes(u, kept);
	if (!err && u->has_inuse)
		err = drop_live(u);
	return err;
}

int budget_unit_tap(struct budget_unit *u)
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
