/* SPDX-License-Identifier: MIT */
/* ledger_notes.c - see recording_notes.h. */
#include "record/recording_notes.h"

#include "profile/profile.h"
#include "track/tracker.h"

#define STAT_LINE(id, kind, name, meaning) { LEDGER_##kind, name, meaning, 0 },

/* indices in the lines beside the counters */
#define UNSEEN_EXECS 2
#define MISJUDGED 3
#define UNSEEN_ALLOCATORS 4
#define LATE_FILES 5
#define SCOPES 6 /* and two more */

/*
 * Calls that are left out because of their caller's place are a part of another call, which is as likely to be sampled.
 * So of those whose samples add up to this many, none or few being found is no chance: fewer than a quarter of 24
 * happen once in a million times.
 */
#define NESTED_DUE_MIN 24
#define NESTED_FOUND_SHARE 4

static const struct ledger_line stat_lines[] = { HT_STATS(STAT_LINE) };

void image_losses_add(struct image_losses *sum, const struct track_instance *inst)
{
	sum->unseen_exec_cnt += inst->unseen_until_ns != 0;
	sum->unseen_allocator_cnt += inst->unseen_cnt;
	sum->late_file_cnt += inst->late_file_cnt;
	sum->scopes.overflows += inst->scope_counters.overflows;
	sum->scopes.underflows += inst->scope_counters.underflows;
	sum->scopes.truncations += inst->scope_counters.truncations;
}

void ledger_lines_set(struct ledger_lines *l, const struct image_losses *losses)
{
	struct ledger_line *line = &l->line[HT_STAT_CNT];

	line[UNSEEN_EXECS].value = losses->unseen_exec_cnt;
	line[UNSEEN_ALLOCATORS].value = losses->unseen_allocator_cnt;
	line[LATE_FILES].value = losses->late_file_cnt;
	line[SCOPES].value = losses->scopes.overflows;
	line[SCOPES + 1].value = losses->scopes.underflows;
	line[SCOPES + 2].value = losses->scopes.truncations;
}

/* The number of calls that were left out, if it is certain that some of them should not have been. */
static uint64_t count_misjudged(const uint64_t stats[HT_STAT_CNT], const struct tracker *t,
				const char **ret_path)
{
	uint64_t due = stats[HT_STAT_NESTED_DUE_16] >> 16, cnt = 0;
	const char *path = NULL;

	*ret_path = NULL;
	if (!stats[HT_STAT_NESTED_UNPROVEN] &&
	    (due < NESTED_DUE_MIN || stats[HT_STAT_NESTED_FOUND] * NESTED_FOUND_SHARE >= due))
		return 0;
	if (t)
		path = tracker_most_unproven(t, &cnt);
	*ret_path = path;
	return stats[HT_STAT_NESTED_UNPROVEN] ? 0 : cnt ? cnt : due;
}

/* Is the counter one for all processes, and not one for each? */
static bool is_common(size_t i)
{
	return i < HT_STAT_CNT + UNSEEN_EXECS || i == HT_STAT_CNT + MISJUDGED;
}

void ledger_lines_read(struct ledger_lines *l, const uint64_t stats[HT_STAT_CNT],
		       const struct tracker *t)
{
	struct ledger_line more[LEDGER_MORE_CNT] = {
		{ LEDGER_SUM, "failed_sites", "probe sites and files that could not be probed", 0 },
		{ LEDGER_SUM, "throwing_sites",
		  "functions not probed because they may throw (operator new): record "
		  "--probe-throwing-new",
		  0 },
		[UNSEEN_EXECS] = { LEDGER_SUM, "unseen_execs",
				   "programs whose allocations right after an exec may be "
				   "missing",
				   0 },
		[MISJUDGED] = { LEDGER_SUM, "nested_misjudged",
				"sampled calls of the program mistaken for inner calls of the "
				"allocator",
				0 },
		[UNSEEN_ALLOCATORS] = { LEDGER_SUM, "unseen_allocators",
					"files with an allocator whose functions have no names: "
					"its allocations or frees are not seen",
					0 },
		[LATE_FILES] = { LEDGER_SUM, "late_files",
				 "files with an allocator that were probed after they were "
				 "mapped: earlier allocations are not seen",
				 0 },
		{ LEDGER_LOSS, "scope_overflows",
		  "scope pushes for which the program's own table was full", 0 },
		{ LEDGER_LOSS, "scope_underflows", "scope pops without a push", 0 },
		{ LEDGER_LOSS, "scope_truncations",
		  "scope pushes beyond the depth limit, charged to the deepest scope", 0 },
	};
	struct probes_counts counts;

	if (t) {
		counts = tracker_counts(t).probes;
		more[0].value = counts.failed_cnt;
		more[1].value = counts.throwing_cnt;
	}
	more[MISJUDGED].value = count_misjudged(stats, t, &l->misjudged_path);
	for (size_t i = 0; i < HT_STAT_CNT; i++) {
		l->line[i] = stat_lines[i];
		l->line[i].value = stats[i];
	}
	memcpy(&l->line[HT_STAT_CNT], more, sizeof(more));
	if (t) {
		struct image_losses losses = { 0 };
		const struct track_instance *inst;

		vec_each(&tracker_instances(t)->list, inst)
			image_losses_add(&losses, inst);
		ledger_lines_set(l, &losses);
	}
	l->is_of_all = false;
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

	if (!err && l->misjudged_path)
		err = profile_comment(p,
				      "not exact: allocator calls from '%s' were mistaken for "
				      "inner calls of the allocator; their allocations are "
				      "missing",
				      l->misjudged_path);
	for (size_t i = 0; i < LEDGER_LINE_CNT && !err; i++)
		if (l->line[i].kind != LEDGER_ACTIVITY && l->line[i].value)
			err = profile_comment(p, "ledger: %s %llu (%s%s)", l->line[i].name,
					      (unsigned long long)l->line[i].value,
					      l->line[i].meaning,
					      l->is_of_all && is_common(i) ?
						      "; of all tracked processes together" :
						      "");
	return err;
}
