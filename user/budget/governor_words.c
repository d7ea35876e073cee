/* SPDX-License-Identifier: MIT */
/* governor_words.c - see governor_words.h. */
#include "budget/governor_words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "budget/governor.h"
#include "model/profile.h"
#include "model/recording.h"

#define PART_BYTES 256

bool governor_step_is_down(const struct governor_step *s)
{
	return s->plan.step > s->from ||
	       (s->plan.step == s->from && s->rate_bytes > s->base_rate_bytes);
}

void governor_history_add(struct governor_history *h, const struct governor_step *step)
{
	h->step_cnt++;
	if (h->cnt == GOVERNOR_HISTORY_CAP)
		memmove(&h->step[1], &h->step[2], (--h->cnt - 1) * sizeof(h->step[0]));
	h->step[h->cnt++] = *step;
}

/* "costs 53 % of its CPU time, the limit is 25 %": by the limit that was in force. */
static void price_words(const struct budget_verdict *v, const struct budget_price *price, char *buf,
			size_t buf_bytes)
{
	if (!budget_has_limit(&v->limit))
		snprintf(buf, buf_bytes, "there is no limit any more");
	else if (v->is_of_one_cpu)
		snprintf(buf, buf_bytes, "costs %.2g %% of one CPU, the limit is %.3g %%",
			 100 * price->one_cpu, 100 * v->limit.one_cpu);
	else
		snprintf(buf, buf_bytes, "costs %.2g %% of its CPU time, the limit is %.3g %%",
			 100 * price->cpu_share, 100 * v->limit.cpu_share);
}

static void down_words(const struct governor_step *s, char *buf, size_t buf_bytes)
{
	const struct budget_verdict *v = &s->verdict;
	char full[PART_BYTES], allocs[PART_BYTES], rate[UNITS_BUF], retry[UNITS_BUF];
	const uint64_t retry_ns = v->retry_ns / NS_PER_S * NS_PER_S;

	price_words(v, &v->full, full, sizeof(full));
	price_words(v, &v->allocs, allocs, sizeof(allocs));
	format_bytes((double)s->rate_bytes, rate, sizeof(rate));
	format_duration(retry_ns, retry, sizeof(retry));
	if (s->plan.step == BUDGET_COARSE)
		snprintf(buf, buf_bytes, "takes fewer samples, one per %s (watching everything %s)",
			 rate, full);
	else if (s->plan.step == BUDGET_ALLOCS)
		snprintf(buf, buf_bytes,
			 "stopped watching frees (watching everything %s): in-use is unknown",
			 full);
	else if (v->is_kill)
		snprintf(
			buf, buf_bytes,
			"stopped recording at once: the probes took %.0f %% of its CPU time for "
			"%.1f s (whatever takes more than %.0f %%, and more than the limit of %.3g "
			"%%, is stopped within half a second); tried again in %s",
			100 * v->before.cpu_share,
			BUDGET_KILL_CNT * (double)BUDGET_INTERVAL_NS / NS_PER_S,
			100 * BUDGET_KILL_SHARE, 100 * v->limit.cpu_share, retry);
	else
		snprintf(buf, buf_bytes,
			 "stopped recording (watching allocations alone %s); tried again in %s",
			 allocs, retry);
}

static void up_words(const struct governor_step *s, char *buf, size_t buf_bytes)
{
	char allocs[PART_BYTES], rate[UNITS_BUF];

	price_words(&s->verdict, &s->verdict.allocs, allocs, sizeof(allocs));
	format_bytes((double)s->rate_bytes, rate, sizeof(rate));
	if (s->plan.step == BUDGET_ALLOCS)
		snprintf(buf, buf_bytes,
			 "watching allocations again (it %s): in-use is still unknown", allocs);
	else if (s->from >= BUDGET_ALLOCS)
		snprintf(buf, buf_bytes,
			 "watching frees again: in use is of what is allocated from now on");
	else
		snprintf(buf, buf_bytes, "takes more samples again, one per %s", rate);
}

/* With what everything is seen. */
static void add_advice(const struct governor_step *s, char *buf, size_t buf_bytes)
{
	const struct recording r = { .pid = s->pid, .full_share = s->verdict.full.cpu_share };
	char way_out[RECORDING_TEXT_BUF];
	size_t used = strlen(buf);

	recording_way_out(&r, s->base_rate_bytes, way_out);
	snprintf(buf + used, buf_bytes - used, "; %s shows it", way_out);
}

char *governor_step_words(const struct governor_step *s, bool has_advice, char *buf,
			  size_t buf_bytes)
{
	bool is_down = governor_step_is_down(s);
	char after[UNITS_BUF], what[2 * PART_BYTES];

	format_duration(s->after_ns, after, sizeof(after));
	if (is_down)
		down_words(s, what, sizeof(what));
	else
		up_words(s, what, sizeof(what));
	if (is_down && has_advice && s->plan.step >= BUDGET_ALLOCS)
		add_advice(s, what, sizeof(what));
	snprintf(buf, buf_bytes, "after %s: %s", after, what);
	return buf;
}

static const char *who(pid_t pid, char *buf, size_t buf_bytes)
{
	if (pid)
		snprintf(buf, buf_bytes, "PID %d: ", pid);
	else
		buf[0] = '\0';
	return buf;
}

static int comment_cost(struct profile *p, const char *name, const struct governor_view *v)
{
	char cost[64] = "not known", limit[PART_BYTES] = "no limit";

	if (!isnan(v->share_overall))
		snprintf(cost, sizeof(cost), "%.2g %% of its CPU time", 100 * v->share_overall);
	if (budget_has_limit(&v->limit)) {
		int used = snprintf(limit, sizeof(limit), "limit: %.3g %% of it",
				    100 * v->limit.cpu_share);

		if (v->limit.one_cpu > 0)
			snprintf(limit + used, sizeof(limit) - (size_t)used,
				 ", or %.3g %% of one CPU", 100 * v->limit.one_cpu);
	}
	return profile_comment(p, "cost: %s%s (%s)", name, cost, limit);
}

int governor_comment_unit(struct profile *p, pid_t pid, const struct governor_record *r)
{
	const struct governor_history *h = &r->history;
	char name[32], words[GOVERNOR_WORDS_CAP];
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
