/* SPDX-License-Identifier: MIT */
/* top_table.c - see top_priv.h. */
#include "record/top_priv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"
#include "base/printable.h"
#include "base/strset.h"
#include "base/units.h"
#include "profile/profile.h"
#include "profile/resident_words.h"
#include "profile/witness.h"
#include "report/report_list.h"
#include "report/report_losses.h"

const char *const top_what_names[] = { "process", "stack", "function", "scope", "thread", NULL };

static const enum report_by by_of[] = {
	[TOP_PROCESSES] = REPORT_BY_STACK,    [TOP_STACKS] = REPORT_BY_STACK,
	[TOP_FUNCTIONS] = REPORT_BY_FUNCTION, [TOP_SCOPES] = REPORT_BY_SCOPE,
	[TOP_THREADS] = REPORT_BY_THREAD,
};

uint64_t top_row_id(enum top_what what, const char *key)
{
	return hash_bytes(key, strlen(key)) * 8 + (uint64_t)what;
}

static void set_title(struct top_table *t, const struct profile *p)
{
	const struct recording *r = &p->recording;
	char time[UNITS_BUF], rate[UNITS_BUF];

	snprintf(t->title, sizeof(t->title), "%s (PID %d)",
		 r->comm_str ? profile_text(p, r->comm_str) : "process", r->pid);
	snprintf(t->about, sizeof(t->about), ", %s, %s%s",
		 format_duration((uint64_t)(r->duration_ns > 0 ? r->duration_ns : 0), time,
				 sizeof(time)),
		 p->period > 1 ? "one sample per " : "every allocation",
		 p->period > 1 ? format_bytes((double)p->period, rate, sizeof(rate)) : "");
}

static void set_cost(struct top_table *t, const struct profile *p)
{
	const struct recording *r = &p->recording;
	char share[UNITS_BUF], limit[RECORDING_TEXT_BUF], why[RECORDING_TEXT_BUF];
	size_t used;

	if (isnan(r->overhead_share))
		used = (size_t)snprintf(t->cost, sizeof(t->cost), "cost unknown yet");
	else
		used = (size_t)snprintf(t->cost, sizeof(t->cost),
					"cost %s %% of its CPU time (limit: %s)",
					format_percent(r->overhead_share, share, sizeof(share)),
					recording_limit_text(&r->limit, limit));
	if (r->inuse == RECORDING_INUSE_UNKNOWN)
		snprintf(t->cost + used, sizeof(t->cost) - used, ". In use is UNKNOWN: %s",
			 recording_why_unknown(r, "", why));
	else if (r->inuse == RECORDING_INUSE_SINCE)
		snprintf(t->cost + used, sizeof(t->cost) - used,
			 ". In use counts only allocations since frees were tracked again");
}

/* Write the largest loss, and the number of further kinds; before that, what the rows cannot explain. */
static void set_losses(struct top_table *t, const struct profile *p)
{
	char words[WITNESS_WORDS];
	struct report_loss largest;
	struct witness w;
	size_t cnt = report_find_losses(p, &largest);

	witness_find(p, &w);
	if (w.is_unexplained)
		snprintf(t->losses, sizeof(t->losses), "%s", witness_words(&w, words));
	else if (!cnt)
		snprintf(t->losses, sizeof(t->losses), "no losses");
	else if (cnt == 1)
		snprintf(t->losses, sizeof(t->losses), "lost: %.400s", largest.text);
	else
		snprintf(t->losses, sizeof(t->losses), "lost: %.400s, and %zu more", largest.text,
			 cnt - 1);
}

static void set_resident(struct top_table *t, const struct profile *p)
{
	char words[RESIDENT_WORDS];

	snprintf(t->resident, sizeof(t->resident), "%.*s", TOP_TEXT_BUF - 1,
		 resident_words(p, words));
	make_printable(t->resident);
}

static struct top_row row_of(const struct report_list_row *from)
{
	struct top_row row = TOP_ROW_NONE;

	row.key = from->key;
	row.name = from->name;
	row.tail = from->callers;
	row.error = from->error;
	row.depth = from->depth;
	row.is_weak = from->is_weak;
	row.held_bytes = from->held_bytes;
	row.held_variance = from->held_variance;
	row.blocks = from->blocks;
	row.alloc_bytes = from->alloc_bytes;
	return row;
}

/* The parent of a row is the last one before it that is less deep. */
static size_t parent_of(const struct top_table *t, uint32_t depth)
{
	size_t i = t->rows.cnt;

	while (depth && i--)
		if (t->rows.data[i].depth < depth)
			return i;
	return SIZE_MAX;
}

static int add_rows(struct top_table *t)
{
	int err = 0;

	for (size_t i = 0; i < report_list_cnt(t->list) && !err; i++) {
		struct top_row row = row_of(report_list_at(t->list, i));

		row.parent = parent_of(t, row.depth);
		err = vec_push(&t->rows, row);
	}
	return err;
}

/* Add the whole profile as one row. */
static int add_process(struct top_table *t, const struct profile *p)
{
	const struct recording *r = &p->recording;
	struct top_row row = t->total;
	char key[16];

	snprintf(key, sizeof(key), "%d", r->pid);
	row.key = strset_keep(t->texts, key);
	if (!row.key)
		return -ENOMEM;
	row.name = profile_text(p, r->comm_str);
	row.tail = profile_text(p, r->exe_str);
	row.pid = r->pid;
	row.cost_share = r->overhead_share;
	return vec_push(&t->rows, row);
}

int top_table_of_profile(const struct profile *p, enum top_what what, struct top_table **ret)
{
	const struct report_options opts = { .by = by_of[what] };
	struct top_table *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->what = what;
	err = strset_new(&t->texts);
	if (!err)
		err = report_list_new(p, &opts, &t->list);
	if (!err) {
		t->total = row_of(report_list_total(t->list));
		if (p->recording.rss_end_bytes)
			t->total.resident_bytes = (double)p->recording.rss_end_bytes;
		set_title(t, p);
		set_cost(t, p);
		set_losses(t, p);
		set_resident(t, p);
		err = what == TOP_PROCESSES ? add_process(t, p) : add_rows(t);
	}
	if (err)
		top_table_free(t);
	else
		*ret = t;
	return err;
}

void top_table_free(struct top_table *t)
{
	if (!t)
		return;
	vec_release(&t->rows);
	report_list_free(t->list);
	strset_free(t->texts);
	free(t);
}
