/* SPDX-License-Identifier: MIT */
/* governor_words.c - see governor_words.h. */
#include "budget/governor_words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "budget/governor.h"
#include "budget/windows.h"
#include "model/profile.h"

void governor_history_add(struct governor_history *h, const struct governor_step *step)
{
	h->step_cnt++;
	if (h->cnt == GOVERNOR_HISTORY_CAP)
		memmove(&h->step[1], &h->step[2], (--h->cnt - 1) * sizeof(h->step[0]));
	h->step[h->cnt++] = *step;
}

/* What is done from here on. */
static void plan_words(const struct governor_step *s, char *buf, size_t buf_bytes)
{
	char rate[UNITS_BUF];

	format_bytes((double)s->rate_bytes, rate, sizeof(rate));
	switch (s->plan.step) {
	case BUDGET_FULL:
		snprintf(buf, buf_bytes, "all is recorded again%s",
			 s->from >= BUDGET_ALLOCS ? ", in-use begins anew" : "");
		break;
	case BUDGET_COARSE:
		snprintf(buf, buf_bytes, "one sample per %s allocated%s", rate,
			 s->from >= BUDGET_ALLOCS ? ", in-use begins anew" : "");
		break;
	case BUDGET_ALLOCS:
		snprintf(
			buf, buf_bytes,
			"allocations only, one sample per %s: frees are not probed, so in-use is not "
			"known",
			rate);
		break;
	case BUDGET_WINDOWS:
		snprintf(
			buf, buf_bytes,
			"%sprobes are in for about %.2g %% of the time, at random: allocations are "
			"scaled up, in-use is not known",
			s->is_kill ? "taken out at once; " : "", 100 * s->plan.duty);
		break;
	case BUDGET_OUT:
		snprintf(buf, buf_bytes,
			 "taken out: nothing is recorded until they are tried again");
		break;
	}
}

char *governor_step_words(const struct governor_step *s, char *buf, size_t buf_bytes)
{
	bool is_down = s->plan.step > s->from || (s->plan.step == s->from && s->share > s->limit);
	char what[200];

	plan_words(s, what, sizeof(what));
	if (is_down)
		snprintf(buf, buf_bytes,
			 "its probes take %.3g %% of its CPU time (limit %.3g %%): %s",
			 100 * s->share, 100 * s->limit, what);
	else if (s->limit <= 0)
		snprintf(buf, buf_bytes, "its overhead budget has no limit any more: %s", what);
	else
		snprintf(buf, buf_bytes, "there is room in its overhead budget of %.3g %%: %s",
			 100 * s->limit, what);
	return buf;
}

int governor_comment_limit(struct profile *p, double max_share, double max_host_share)
{
	int err;

	if (max_share <= 0)
		err = profile_comment(p, "budget: off");
	else
		err = profile_comment(p,
				      "budget: at most %.3g %% of the CPU time of each process, or "
				      "%.3g %% of one CPU",
				      100 * max_share, 100 * BUDGET_FLOOR);
	if (!err && max_host_share > 0)
		err = profile_comment(p, "budget: at most %.3g %% of the time of all CPUs",
				      100 * max_host_share);
	return err;
}

static const char *who(pid_t pid, char *buf, size_t buf_bytes)
{
	if (pid)
		snprintf(buf, buf_bytes, "PID %d: ", pid);
	else
		buf[0] = '\0';
	return buf;
}

/* "in-use: " is what a report shows at its top: it must be there whenever in-use is not all. */
static int comment_inuse(struct profile *p, const char *name, const struct governor_view *v,
			 uint64_t followed_ns)
{
	char after[UNITS_BUF];

	if (!v->has_inuse)
		return profile_comment(
			p,
			"in-use: %snot known: the probes on frees are out, to keep the "
			"overhead budget (--max-overhead)",
			name);
	if (!v->inuse_ns)
		return 0;
	return profile_comment(
		p,
		"in-use: %swindow: only blocks allocated from %s after the attachment "
		"on, when the probes on frees came back",
		name, format_duration(v->inuse_ns - followed_ns, after, sizeof(after)));
}

static int comment_windows(struct profile *p, const char *name, const struct governor_view *v)
{
	int err;

	if (v->step != BUDGET_WINDOWS)
		return 0;
	err = profile_comment(
		p,
		"windows: %sprobes are in for %.3g %% of the time, and the process gets "
		"on %.1f times slower meanwhile: alloc_* are scaled up for both",
		name, 100 * v->duty, v->slowdown);
	if (!err && v->slowdown >= WINDOWS_SLOWDOWN_BOUND)
		err = profile_comment(p,
				      "windows: %salloc_* are a lower bound: the slowdown is too "
				      "large to be measured",
				      name);
	else if (!err && v->slowdown_high > WINDOWS_SURE * v->slowdown_low)
		err = profile_comment(p,
				      "windows: %salloc_* are uncertain: the slowdown may be "
				      "anything from %.1f to %.1f",
				      name, v->slowdown_low, v->slowdown_high);
	if (!err && !isfinite(v->spread))
		err = profile_comment(p,
				      "windows: %salloc_* are uncertain: there were too few "
				      "windows so far; record for longer",
				      name);
	else if (!err)
		err = profile_comment(p,
				      "windows: %s%u so far; chance decides what they see: the "
				      "sum of alloc_* is good to +- %.0f %% (95 %%)",
				      name, v->window_cnt, 196 * v->spread);
	return err;
}

int governor_comment_unit(struct profile *p, pid_t pid, const struct governor_view *v,
			  const struct governor_history *h, uint64_t followed_ns)
{
	char name[32], words[GOVERNOR_WORDS_CAP], after[UNITS_BUF];
	int err;

	who(pid, name, sizeof(name));
	err = profile_comment(
		p, "achieved overhead: %s%.2f %% of the target's CPU time; at the end %.2f %%",
		name, 100 * v->share_overall, 100 * v->share);
	if (!err)
		err = comment_inuse(p, name, v, followed_ns);
	if (!err)
		err = comment_windows(p, name, v);
	for (size_t i = 0; i < h->cnt && !err; i++) {
		if (i == 1 && h->step_cnt > h->cnt)
			err = profile_comment(p, "budget: %s... %zu more steps ...", name,
					      h->step_cnt - h->cnt);
		if (!err)
			err = profile_comment(
				p, "budget: %safter %s: %s -> %s: %s", name,
				format_duration(h->step[i].after_ns, after, sizeof(after)),
				budget_step_name(h->step[i].from),
				budget_step_name(h->step[i].plan.step),
				governor_step_words(&h->step[i], words, sizeof(words)));
	}
	return err;
}
