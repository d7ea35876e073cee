/* SPDX-License-Identifier: MIT */
/* top_table.c - see top_priv.h. */
#include "record/top_priv.h"

#include "base/printable.h"
#include "base/strset.h"
#include "base/units.h"
#include "profile/profile.h"
#include "profile/resident_words.h"
#include "profile/witness.h"
#include "report/report_losses.h"
#include "report/report_places.h"
#include "report/report_rows.h"
#include "report/report_text.h"

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
		used = (size_t)snprintf(t->cost, sizeof(t->cost), "cost not known yet");
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

#define CALLERS_BUF 2048

/* The report that the rows are of. */
struct top_report {
	struct report_options opts;
	struct report *r;
	struct report_places places; /* by stack */
	VEC(size_t) source; /* of each row: index in places or r->rows */
};

static int set_numbers(const struct report *r, const struct report_row *row, struct top_row *ret)
{
	bool is_known = r->is_inuse && !r->is_unknown;
	char error[REPORT_INTERVAL_BUF] = "";

	if (is_known) {
		ret->held_bytes = (double)row->value;
		report_format_short_interval(r, row, error);
	}
	if (is_known && r->objects_type >= 0)
		ret->blocks = (double)row->objects;
	if (is_known && r->has_interval)
		ret->held_variance = row->estimate.bytes_variance;
	if (r->alloc_type >= 0)
		ret->alloc_bytes = report_alloc(row);
	else if (r->is_alloc)
		ret->alloc_bytes = report_value(row);
	ret->is_weak = is_known && report_is_weak(r, row);
	ret->error = strset_keep(r->names, error);
	return ret->error ? 0 : -ENOMEM;
}

/* "Store::put store.cc:12 (vector grows)" */
static void name_own(const struct report_named_place *n, char *buf, size_t buf_bytes)
{
	snprintf(buf, buf_bytes, "%s%s%s%s%s", n->own.name, n->own.place, n->hint ? " (" : "",
		 n->hint ? n->hint : "", n->hint ? ")" : "");
}

/* The key of a stack has what report_find_places() groups by. */
static int name_place(const struct report *r, const struct report_row *row, struct top_row *ret)
{
	struct report_named_place n;
	char name[2 * REPORT_NAME_BUF], key[4 * REPORT_NAME_BUF], callers[CALLERS_BUF] = "";
	size_t used = 0;

	report_name_place(r, row, &n);
	name_own(&n, name, sizeof(name));
	for (size_t i = 0; i < n.caller_cnt && used < sizeof(callers); i++)
		used += (size_t)snprintf(callers + used, sizeof(callers) - used, "%s< %s%s",
					 i ? " " : "", n.caller[i].name, n.caller[i].place);
	ret->name = strset_keep(r->names, name);
	ret->tail = strset_keep(r->names, callers);
	report_strip_tier(n.own.name);
	report_strip_tier(n.caller[0].name);
	name_own(&n, name, sizeof(name));
	snprintf(key, sizeof(key), "%s < %s%s", name, n.caller[0].name, n.caller[0].place);
	ret->key = strset_keep(r->names, key);
	return ret->key && ret->name && ret->tail ? 0 : -ENOMEM;
}

static int name_row(const struct top_report *from, const struct report_row *row,
		    struct top_row *ret)
{
	bool is_scope = from->opts.by == REPORT_BY_SCOPE && row->scope.path;
	const struct report *r = from->r;

	if (from->opts.by == REPORT_BY_STACK)
		return name_place(r, row, ret);
	ret->name = strset_get(r->names, row->name);
	ret->key = is_scope ? strset_get(r->names, row->scope.path) : ret->name;
	ret->depth = row->scope.depth;
	return 0;
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

static int add_row(struct top_table *t, const struct report_row *from, size_t source)
{
	struct top_row row = TOP_ROW_NONE;
	int err = name_row(t->report, from, &row);

	if (!err)
		err = set_numbers(t->report->r, from, &row);
	row.parent = parent_of(t, row.depth);
	if (!err)
		err = vec_push(&t->rows, row);
	return err ? err : vec_push(&t->report->source, source);
}

/* A caller without values of its own is not listed. */
static bool is_nothing(const struct report_row *row)
{
	return !row->value && !row->alloc && !row->objects;
}

static int add_rows(struct top_table *t)
{
	struct top_report *from = t->report;
	const struct report_row *rows = from->r->rows.data;
	size_t cnt = from->r->rows.cnt;
	int err = 0;

	if (from->opts.by == REPORT_BY_STACK) {
		err = report_find_places(from->r, &from->places);
		rows = from->places.data;
		cnt = from->places.cnt;
	}
	for (size_t i = 0; i < cnt && !err; i++)
		if (!is_nothing(&rows[i]))
			err = add_row(t, &rows[i], i);
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
	struct top_table *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->what = what;
	t->total = TOP_ROW_NONE;
	t->report = calloc(1, sizeof(*t->report));
	err = t->report ? strset_new(&t->texts) : -ENOMEM;
	if (!err) {
		t->report->opts = (struct report_options){ .by = by_of[what],
							   .value = REPORT_VALUE_INUSE,
							   .format = REPORT_TEXT };
		err = report_open(p, &t->report->opts, &t->report->r);
	}
	if (!err)
		err = set_numbers(t->report->r, &t->report->r->total, &t->total);
	if (!err) {
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

static void report_free(struct top_report *from)
{
	if (!from)
		return;
	vec_release(&from->source);
	vec_release(&from->places);
	report_close(from->r);
	free(from);
}

void top_table_free(struct top_table *t)
{
	if (!t)
		return;
	vec_release(&t->rows);
	report_free(t->report);
	strset_free(t->texts);
	free(t);
}

const char *top_table_frame(const struct top_table *t, size_t i, size_t n, char buf[TOP_FRAME_BUF])
{
	const struct report *r = t->report->r;
	struct report_frame_pos pos = { 0 };
	const struct report_row *row;
	struct report_frame f;
	struct report_named named;

	if (t->what != TOP_STACKS)
		return NULL;
	row = &t->report->places.data[t->report->source.data[i]];
	if (!row->sample_cnt)
		return NULL;
	for (size_t k = 0; k <= n; k++)
		if (!report_next_frame(r->p, &r->p->samples.data[r->order.data[row->sample_first]],
				       &pos, &f))
			return NULL;
	report_name_frame(r, &f, &named);
	snprintf(buf, TOP_FRAME_BUF, "%s%s", named.name, named.place);
	return buf;
}
