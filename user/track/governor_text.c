/* SPDX-License-Identifier: MIT */
/* governor_text.c - see governor_priv.h. */
#include "track/governor_priv.h"

#include "base/units.h"
#include "profile/profile.h"

#define PRICE_BYTES 192
#define REASON_BYTES 320

bool governor_step_is_down(const struct governor_step *s)
{
	if (s->is_tap)
		return false;
	return s->plan.step > s->from.step ||
	       (s->plan.step == s->from.step && s->plan.coarse > s->from.coarse);
}

/* " (5 %, reduced as ...)", or "" for a limit in force that is the one that was given. */
static char *reduced_words(double limit, double given, char *buf, size_t buf_bytes)
{
	buf[0] = '\0';
	if (given > 1.001 * limit)
		snprintf(buf, buf_bytes,
			 " (%.3g %%, reduced because all processes together are near their limit)",
			 100 * given);
	return buf;
}

/* "costs 53 % of its CPU time, the limit is 25 %", in the unit of the limit in force. */
static void price_words(const struct budget_verdict *v, const struct budget_price *price, char *buf,
			size_t buf_bytes)
{
	char cost[UNITS_BUF], reduced[80];

	if (!budget_has_limit(&v->limit))
		snprintf(buf, buf_bytes, "costs %s %% of its CPU time, the limit was lifted",
			 format_percent(price->cpu_share, cost, sizeof(cost)));
	else if (v->is_of_one_cpu)
		snprintf(buf, buf_bytes, "costs %s %% of one CPU, the limit is %.3g %%%s",
			 format_percent(price->one_cpu, cost, sizeof(cost)), 100 * v->limit.one_cpu,
			 reduced_words(v->limit.one_cpu, v->given.one_cpu, reduced,
				       sizeof(reduced)));
	else
		snprintf(buf, buf_bytes, "costs %s %% of its CPU time, the limit is %.3g %%%s",
			 format_percent(price->cpu_share, cost, sizeof(cost)),
			 100 * v->limit.cpu_share,
			 reduced_words(v->limit.cpu_share, v->given.cpu_share, reduced,
				       sizeof(reduced)));
}

/* Say why something is given up: what costs too much. */
static void reason_words(const struct governor_step *s, char *buf, size_t buf_bytes)
{
	const struct budget_verdict *v = &s->verdict;
	const bool is_off = s->plan.step == BUDGET_OFF;
	char price[PRICE_BYTES];

	price_words(v,
		    v->is_kill ? &v->before :
		    is_off     ? &v->allocs :
				 &v->full,
		    price, sizeof(price));
	if (v->is_kill)
		snprintf(buf, buf_bytes, " at once (recording %s)", price);
	else
		snprintf(buf, buf_bytes, " (%s %s)",
			 is_off ? "recording allocations alone" : "tracking everything", price);
}

static void down_words(const struct governor_step *s, char *buf, size_t buf_bytes)
{
	const uint64_t retry_ns = s->verdict.retry_ns / NS_PER_S * NS_PER_S;
	char reason[REASON_BYTES], rate[UNITS_BUF], retry[UNITS_BUF];

	reason_words(s, reason, sizeof(reason));
	if (s->plan.step == BUDGET_COARSE)
		snprintf(buf, buf_bytes, "fewer samples from now on, one per %s%s",
			 format_bytes((double)s->rate_bytes, rate, sizeof(rate)), reason);
	else if (s->plan.step == BUDGET_ALLOCS)
		snprintf(buf, buf_bytes, "stopped tracking frees%s: heap in use is unknown",
			 reason);
	else
		snprintf(buf, buf_bytes, "stopped recording%s; retrying in %s", reason,
			 format_duration(retry_ns, retry, sizeof(retry)));
}

static void up_words(const struct governor_step *s, char *buf, size_t buf_bytes)
{
	char price[PRICE_BYTES], rate[UNITS_BUF];

	price_words(&s->verdict, &s->verdict.allocs, price, sizeof(price));
	if (s->plan.step == BUDGET_ALLOCS)
		snprintf(buf, buf_bytes,
			 "recording allocations again (that %s): heap in use is still unknown",
			 price);
	else if (s->from.step >= BUDGET_ALLOCS)
		snprintf(buf, buf_bytes, "tracking frees again: heap in use counts from now");
	else
		snprintf(buf, buf_bytes, "more samples again, one per %s",
			 format_bytes((double)s->rate_bytes, rate, sizeof(rate)));
}

static void tap_words(const struct governor_step *s, char *buf, size_t buf_bytes)
{
	char cost[UNITS_BUF];

	snprintf(buf, buf_bytes, "the tap replaces probes, which cost %s %% of its CPU time",
		 format_percent(s->verdict.before.cpu_share, cost, sizeof(cost)));
}

/* Say by which options everything would be seen. */
static void add_advice(const struct governor_step *s, char *buf, size_t buf_bytes)
{
	struct recording r = { .pid = s->pid,
			       .follows_children = s->follows_children,
			       .full_share = s->verdict.full.cpu_share };
	char way_out[RECORDING_TEXT_BUF];
	size_t used = strlen(buf);

	/* It may have ended before somebody reads this. */
	if (s->program_argv)
		recording_program_text(s->program_argv, r.program, sizeof(r.program));
	recording_advice(&r, s->base_rate_bytes, way_out);
	if (s->is_tap_refused)
		snprintf(buf + used, buf_bytes - used, "; to measure it: %s", way_out);
	else
		snprintf(buf + used, buf_bytes - used, "; to measure it, use --tap (%s), or %s",
			 RECORDING_TAP_COST, way_out);
}

char *governor_step_words(const struct governor_step *s, bool has_advice, char *buf,
			  size_t buf_bytes)
{
	bool is_down = governor_step_is_down(s);
	char after[UNITS_BUF], what[GOVERNOR_TEXT_CAP - UNITS_BUF];

	format_duration(s->after_ns, after, sizeof(after));
	if (s->is_tap)
		tap_words(s, what, sizeof(what));
	else if (is_down)
		down_words(s, what, sizeof(what));
	else
		up_words(s, what, sizeof(what));
	if (is_down && has_advice && s->plan.step >= BUDGET_ALLOCS)
		add_advice(s, what, sizeof(what));
	snprintf(buf, buf_bytes, "after %s: %s", after, what);
	return buf;
}

void governor_log_step(struct governor *g, struct governed *gd, const struct governor_step *step)
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

static const char *who(pid_t pid, char *buf, size_t buf_bytes)
{
	if (pid)
		snprintf(buf, buf_bytes, "PID %d: ", pid);
	else
		buf[0] = '\0';
	return buf;
}

/* "6 % of one CPU" if the limit is one of that, else "9 % of its CPU time". */
static char *cost_words(const struct budget_price *price, bool is_of_one_cpu, char *buf,
			size_t buf_bytes)
{
	char share[UNITS_BUF];

	snprintf(buf, buf_bytes, "%s %% of %s",
		 format_percent(is_of_one_cpu ? price->one_cpu : price->cpu_share, share,
				sizeof(share)),
		 is_of_one_cpu ? "one CPU" : "its CPU time");
	return buf;
}

static int comment_cost(struct profile *p, const char *name, const struct governor_view *v)
{
	bool is_of_one_cpu = v->limit.one_cpu > 0;
	char cost[64] = "not known", one_cpu[64] = "", settled[64] = "", words[64], limit[64];

	if (!isnan(v->overall.cpu_share))
		cost_words(&v->overall, false, cost, sizeof(cost));
	if (!isnan(v->overall.cpu_share) && is_of_one_cpu)
		snprintf(one_cpu, sizeof(one_cpu), ", %.32s",
			 cost_words(&v->overall, true, words, sizeof(words)));
	/* It was more at first, which is how that was found out. */
	if (v->step_cnt && !isnan(v->settled.cpu_share))
		snprintf(settled, sizeof(settled), ", %.32s after the first %.0f s",
			 cost_words(&v->settled, is_of_one_cpu, words, sizeof(words)),
			 (double)BUDGET_SETTLE_NS / NS_PER_S);
	snprintf(limit, sizeof(limit), "limit: %.3g %%%s",
		 100 * (is_of_one_cpu ? v->limit.one_cpu : v->limit.cpu_share),
		 is_of_one_cpu ? " of one CPU" : "");
	return profile_comment(p, "cost: %s%s%s%s (%s)", name, cost, one_cpu, settled,
			       budget_has_limit(&v->limit) ? limit : "no limit");
}

/* Comment on the cost of a process, and on its steps. pid 0: of all that the profile covers. */
static int comment_unit(struct profile *p, pid_t pid, const struct governor_record *r)
{
	const struct governor_history *h = &r->history;
	char name[32], words[GOVERNOR_TEXT_CAP];
	int err;

	who(pid, name, sizeof(name));
	err = comment_cost(p, name, &r->view);
	for (size_t i = 0; i < h->cnt && !err; i++) {
		if (i == 1 && h->step_cnt > h->cnt)
			err = profile_comment(p, "budget: %s... %zu more steps ...", name,
					      h->step_cnt - h->cnt);
		if (!err)
			err = profile_comment(p, "budget: %s%s", name,
					      governor_step_words(&h->step[i], false, words,
								  sizeof(words)));
	}
	return err;
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
	const uint64_t *idx = governor_idx(g, pid);

	if (!idx)
		return -ENOENT;
	view_governed(g, &g->governed.data[*idx], ret);
	return 0;
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
	const uint64_t *idx = governor_idx(g, pid);

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
		err = comment_unit(p, pid || g->governed.cnt == 1 ? 0 : u->pid, &record);
	}
	return err;
}

int governor_comment_record(const struct governor_record *r, struct profile *p)
{
	return r->is_known ? comment_unit(p, 0, r) : 0;
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
