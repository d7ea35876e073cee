/* SPDX-License-Identifier: MIT */
/* ledger_notes.c - see ledger_notes.h. */
#include "snapshot/ledger_notes.h"

#include <stdio.h>
#include <string.h>

#include "profile/profile.h"
#include "track/tracker.h"

#define STAT_LINE(id, kind, name, meaning) { LEDGER_##kind, name, meaning, 0 },

#define UNSEEN_EXECS 2 /* index in the lines beside the counters */

static const struct ledger_line stat_lines[] = { HT_STATS(STAT_LINE) };

static struct scope_counters sum_scope_counters(const struct tracker *t)
{
	struct scope_counters sum = { 0 };
	size_t cnt;
	const struct track_instance *inst = tracker_instances(t, &cnt);

	for (size_t i = 0; i < cnt; i++) {
		sum.overflows += inst[i].scope_counters.overflows;
		sum.underflows += inst[i].scope_counters.underflows;
		sum.truncations += inst[i].scope_counters.truncations;
	}
	return sum;
}

static uint64_t count_unseen_execs(const struct tracker *t)
{
	size_t cnt;
	const struct track_instance *inst = tracker_instances(t, &cnt);
	uint64_t sum = 0;

	for (size_t i = 0; i < cnt; i++)
		sum += inst[i].unseen_until_ns != 0;
	return sum;
}

void ledger_lines_set_unseen_execs(struct ledger_lines *l, uint64_t cnt)
{
	l->line[HT_STAT_CNT + UNSEEN_EXECS].value = cnt;
}

void ledger_lines_read(struct ledger_lines *l, const uint64_t stats[HT_STAT_CNT],
		       const struct tracker *t)
{
	struct ledger_line more[LEDGER_MORE_CNT] = {
		{ LEDGER_SUM, "failed_sites", "probe sites and files that could not be had", 0 },
		{ LEDGER_SUM, "throwing_sites",
		  "operator new not probed: it may throw, see record --probe-throwing-new", 0 },
		[UNSEEN_EXECS] = { LEDGER_SUM, "unseen_execs",
				   "programs that may have allocated unseen after an exec, until "
				   "they were probed or ended",
				   0 },
		{ LEDGER_LOSS, "scope_overflows",
		  "pushes of a scope that the program's own table had no room for", 0 },
		{ LEDGER_LOSS, "scope_underflows", "pops without a push", 0 },
		{ LEDGER_LOSS, "scope_truncations",
		  "pushes deeper than scopes are told apart, charged to the last one", 0 },
	};
	struct scope_counters scopes;
	int why;

	if (t) {
		scopes = sum_scope_counters(t);
		more[0].value = tracker_failed_cnt(t, &why);
		more[1].value = tracker_throwing_cnt(t);
		more[UNSEEN_EXECS].value = count_unseen_execs(t);
		more[3].value = scopes.overflows;
		more[4].value = scopes.underflows;
		more[5].value = scopes.truncations;
	}
	for (size_t i = 0; i < HT_STAT_CNT; i++) {
		l->line[i] = stat_lines[i];
		l->line[i].value = stats[i];
	}
	memcpy(&l->line[HT_STAT_CNT], more, sizeof(more));
}

bool ledger_lines_are_lossy(const struct ledger_lines *l)
{
	for (size_t i = 0; i < LEDGER_LINE_CNT; i++)
		if (l->line[i].kind == LEDGER_SUM && l->line[i].value)
			return true;
	return false;
}

static int add_counters(struct profile *p, const struct ledger_lines *l)
{
	char text[2048] = "";
	size_t used = 0;

	for (size_t i = 0; i < HT_STAT_CNT && used < sizeof(text); i++)
		if (l->line[i].kind == LEDGER_ACTIVITY && l->line[i].value)
			used += (size_t)snprintf(text + used, sizeof(text) - used, " %s=%llu",
						 l->line[i].name,
						 (unsigned long long)l->line[i].value);
	return *text ? profile_comment(p, "counters:%s", text) : 0;
}

int ledger_notes_add(struct profile *p, const struct ledger_lines *l)
{
	int err = add_counters(p, l);

	for (size_t i = 0; i < LEDGER_LINE_CNT && !err; i++)
		if (l->line[i].kind != LEDGER_ACTIVITY && l->line[i].value)
			err = profile_comment(p, "ledger: %s %llu (%s)", l->line[i].name,
					      (unsigned long long)l->line[i].value,
					      l->line[i].meaning);
	return err;
}
