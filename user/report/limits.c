/* SPDX-License-Identifier: MIT */
/*
 * limits.c - compares a profile with the limits of heaptap check: each passes, fails or is unknown, with the reason
 * (see limits.h). profile/growth.c defines growth, and when it counts.
 */
#include "report/limits.h"

#include "base/err.h"
#include "base/printable.h"
#include "profile/profile.h"
#include "profile/resident_words.h"
#include "profile/witness.h"
#include "report/report_diff_rows.h"
#include "report/report_places.h"
#include "report/report_rows.h"
#include "report/report_text.h"

/* The advised rate would tell in 4 of 5 recordings. */
#define FINER_SURE 1.85
/* Below this rate, recording everything costs no more. */
#define RATE_LEAST 64
#define NAME_COLUMNS 200
/* all parts of a name together fit */
#define OWN_COLUMNS 90
#define CALLER_COLUMNS 35
#define CALLERS_MAX 2

/* A result whose values are unknown. */
static struct limit_result *add_result(struct limits *l, enum limit_kind kind)
{
	struct limit_result *res = &l->results[l->cnt++];

	*res = (struct limit_result){ .kind = kind,
				      .limit = l->opts.limit[kind],
				      .value = NAN,
				      .low = NAN,
				      .high = NAN,
				      .before = NAN };
	return res;
}

static int open_rows(const struct limits *l, enum report_by by, struct report_options *o,
		     struct report **ret)
{
	*o = (struct report_options){ .by = by,
				      .format = REPORT_JSON,
				      .value = REPORT_VALUE_INUSE,
				      .warm_up_ns = l->opts.warm_up_ns };
	return report_open(l->p, o, ret);
}

/* Add a named row. The name goes into texts of one line. 0 or -ENOMEM. */
static int add_row(struct limit_result *res, const char *name, double value, double low,
		   double high)
{
	char text[REPORT_FIT_BUF];
	char *copy = strdup(report_fit_name(name, NAME_COLUMNS, text));
	int err =
		copy ? vec_push(&res->rows, (struct limit_row){ copy, value, low, high }) : -ENOMEM;

	if (err)
		free(copy);
	return err;
}

static int compare_rows(const void *a, const void *b)
{
	double x = ((const struct limit_row *)a)->value, y = ((const struct limit_row *)b)->value;

	return (x < y) - (x > y);
}

static void choose_rows(const struct limits *l, struct limit_result *res)
{
	size_t cap = l->opts.row_cap ? l->opts.row_cap : SIZE_MAX;

	if (res->rows.cnt)
		qsort(res->rows.data, res->rows.cnt, sizeof(*res->rows.data), compare_rows);
	while (res->rows.cnt > cap) {
		free(res->rows.data[--res->rows.cnt].name);
		res->more_row_cnt++;
	}
}

/* Where it is charged, through what it came to the allocator, and the way that led there. */
static const char *name_place(const struct report *r, const struct report_row *row,
			      struct report_named_place *place, char buf[REPORT_FIT_BUF])
{
	size_t used, cnt = report_name_place(r, row, place);
	char text[REPORT_FIT_BUF];

	report_fit_named(&place->own, OWN_COLUMNS, buf);
	used = strlen(buf);
	if (place->hint && used < REPORT_FIT_BUF)
		used += (size_t)snprintf(buf + used, REPORT_FIT_BUF - used, " (%s)",
					 report_fit_name(place->hint, CALLER_COLUMNS, text));
	for (size_t i = 0; i < cnt && i < CALLERS_MAX && used < REPORT_FIT_BUF; i++)
		used += (size_t)snprintf(buf + used, REPORT_FIT_BUF - used, " < %s",
					 report_fit_named(&place->caller[i], CALLER_COLUMNS, text));
	return buf;
}

/* Say that in-use is not known, and what would make it known. */
static void say_unknown(const struct profile *p, struct limit_result *res)
{
	char why[RECORDING_TEXT_BUF] = "", comm[32];
	unsigned percent = recording_advised_percent(&p->recording);

	snprintf(comm, sizeof(comm), "%.16s", profile_text(p, p->recording.comm_str));
	recording_why_unknown(&p->recording, comm, why);
	if (p->recording.has_nameless_frees)
		snprintf(res->why, sizeof(res->why), "In use is unknown. %s", why);
	else if (p->recording.has_no_tap)
		snprintf(res->why, sizeof(res->why),
			 "In use is unknown. %s Probes record from the beginning: leave out --tap",
			 why);
	else if (percent)
		snprintf(res->why, sizeof(res->why),
			 "In use is unknown. %s To measure it, use --tap or --max-overhead %u", why,
			 percent);
	else
		snprintf(res->why, sizeof(res->why),
			 "In use is unknown. %s To measure it, use --tap or --max-overhead off",
			 why);
}

/* true: in-use is known, go on. false: the result is unknown, and why is set. */
static bool check_inuse(const struct report *r, struct limit_result *res)
{
	if (r->is_unknown) {
		say_unknown(r->p, res);
		return false;
	}
	if (!r->is_inuse) {
		snprintf(res->why, sizeof(res->why), "The profile has no heap in use");
		return false;
	}
	return true;
}

/* Were frees not watched from the beginning? Then no sum has what was allocated before. */
static bool is_since(const struct report *r)
{
	return r->p->recording.is_known && r->p->recording.inuse == RECORDING_INUSE_SINCE;
}

/* What made the process grow may be beyond the limit. Blocks that were freed are not. */
static void keep_if_explained(const struct profile *p, struct limit_result *res)
{
	char words[WITNESS_WORDS];
	struct witness w;

	witness_find(p, &w);
	if (w.is_unexplained && !w.was_freed && !w.is_kept_free)
		snprintf(res->why, sizeof(res->why), "%s", witness_words(&w, words));
	else
		res->verdict = LIMIT_KEPT;
}

/* The process grew by memory that is not seen: it may be the excess. */
static void say_least(const struct report *r, struct limit_result *res)
{
	size_t at = 0;
	const char *what = report_next_unseen(r->p, &at);

	snprintf(res->why, sizeof(res->why),
		 "The process grew by more than twice its heap in use: %s", what ? what : "");
}

/* Compare the interval with the limit. A lossy profile keeps no limit, because what was lost may be the excess. */
static void decide(const struct report *r, struct limit_result *res)
{
	bool is_late = res->kind != LIMIT_GROWTH && is_since(r), is_least = report_is_least(r);

	res->is_lossy = r->is_lossy || is_late || is_least;
	if (res->low > res->limit) {
		res->verdict = LIMIT_BROKEN;
	} else if (res->high <= res->limit && is_late) {
		snprintf(res->why, sizeof(res->why),
			 "In use covers only the last part of the recording, because frees were "
			 "not tracked before");
	} else if (res->high <= res->limit && r->is_lossy) {
		snprintf(res->why, sizeof(res->why),
			 "The profile has losses, which may exceed the limit; its notes name "
			 "them (--profile FILE, heaptap report --notes FILE)");
	} else if (res->high <= res->limit && is_least) {
		say_least(r, res);
	} else if (res->high <= res->limit) {
		keep_if_explained(r->p, res);
	}
}

/* The error falls with the square root of the rate. */
static void advise_rate(const struct report *r, struct limit_result *res)
{
	double gap = fabs(res->value - res->limit);
	double reach = res->value > res->limit ? res->value - res->low : res->high - res->value;
	double rate = (double)r->rate_bytes * (gap / reach) * (gap / reach) / FINER_SURE;

	if (res->verdict != LIMIT_UNKNOWN || res->why[0] || r->rate_bytes <= 1 || !(reach > 0))
		return;
	res->rate_bytes = rate < RATE_LEAST ? 1 : (uint64_t)exp2(floor(log2(rate)));
}

/* ---- growth ---- */

/* Add the rows whose old blocks stay. */
static void add_staying(const struct report *r, struct growth_sums *staying)
{
	const struct report_row *row;

	vec_each(&r->rows, row)
		if (!growth_is_replaced(&row->growth))
			growth_merge(staying, &row->growth);
}

/* Add rows that grow for sure; if there are none, those that seem to grow most. */
static int add_growing_rows(const struct limits *l, const struct report *r,
			    struct limit_result *res)
{
	struct report_places places = { 0 };
	const struct report_row *row;
	struct report_named_place place;
	char name[REPORT_FIT_BUF];
	int err = report_find_places(r, &places);

	for (int sure = 1; sure >= 0 && !res->rows.cnt && !err; sure--) {
		vec_each(&places, row) {
			struct growth_limit g;

			growth_compare(&r->growth_plan, &row->growth, &row->growth, 0, l->opts.tail,
				       &g);
			if (err || !g.has_rate || g.bytes_per_s <= 0 || (sure && g.low <= 0))
				continue;
			err = add_row(res, name_place(r, row, &place, name), g.bytes_per_s, g.low,
				      g.high);
		}
	}
	vec_release(&places);
	return err;
}

static void say_growth(const struct growth_plan *plan, const struct growth_limit *g,
		       struct limit_result *res)
{
	if (!plan->is_known)
		snprintf(res->why, sizeof(res->why), "The recording is too short");
	else if (!g->has_rate)
		snprintf(res->why, sizeof(res->why),
			 "Not all heap in use fitted into the history of the recording; use a "
			 "coarser --rate");
	else if (g->slows)
		snprintf(res->why, sizeof(res->why),
			 "It grew beyond the limit, but more slowly at the end: it may only have "
			 "warmed up (--warm-up TIME)");
	else if (g->is_replaced)
		snprintf(res->why, sizeof(res->why),
			 "It grew beyond the limit, but its old blocks are freed: it may be a "
			 "cache that filled up");
	else if (!g->more_s)
		snprintf(res->why, sizeof(res->why),
			 "It is too close to the limit, or fluctuates too much");
}

static int judge_growth(struct limits *l)
{
	struct limit_result *res = add_result(l, LIMIT_GROWTH);
	struct growth_sums staying = { 0 };
	struct report_options o;
	struct report *r = NULL;
	struct growth_limit g;
	int err = open_rows(l, REPORT_BY_STACK, &o, &r);

	if (err || !check_inuse(r, res))
		goto out;
	if (!l->p->moments_ns.cnt) {
		snprintf(res->why, sizeof(res->why),
			 "The profile has no heap in use over time: only those of heaptap record, "
			 "check and serve (?pid=N) have it");
		goto out;
	}
	add_staying(r, &staying);
	growth_compare(&r->growth_plan, &r->total.growth, &staying, res->limit, l->opts.tail, &g);
	res->more_s = g.side == GROWTH_SIDE_UNKNOWN ? g.more_s : 0;
	if (g.has_rate) {
		res->value = g.bytes_per_s;
		res->low = g.low;
		res->high = g.high;
	}
	if (g.side == GROWTH_SIDE_UNKNOWN)
		say_growth(&r->growth_plan, &g, res);
	else
		decide(r, res);
	if (res->verdict != LIMIT_KEPT)
		err = add_growing_rows(l, r, res);
out:
	report_close(r);
	return err;
}

/* ---- in use ---- */

static void take_estimate(const struct limits *l, const struct report *r,
			  const struct report_row *row, struct limit_result *res)
{
	struct estimate e = row->estimate;

	e.rate_bytes =
		fmax(e.rate_bytes, (double)r->rate_bytes); /* an unseen block weighs as much */
	res->value = (double)row->value;
	if (r->has_interval && !isnan(e.bytes_variance)) {
		estimate_interval_at(&e, l->opts.tail, &res->low, &res->high);
		/* Only blocks that are always kept were seen; there may be smaller ones. */
		if (r->rate_bytes > 1 && e.bytes > 0 && e.bytes_variance <= 0)
			res->high += -log(2 * l->opts.tail) * e.rate_bytes;
	} else if (r->rate_bytes == 1) {
		res->low = res->high = res->value;
	} else {
		snprintf(res->why, sizeof(res->why), "The profile has no confidence intervals");
		return;
	}
	decide(r, res);
	advise_rate(r, res);
}

static int add_holders(const struct limits *l, const struct report *r, struct limit_result *res)
{
	struct report_places places = { 0 };
	struct report_named_place place;
	const struct report_row *row;
	char name[REPORT_FIT_BUF];
	int err = report_find_places(r, &places);

	vec_each(&places, row) {
		double low = NAN, high = NAN;

		if (err || row->value <= 0)
			continue;
		if (r->has_interval)
			estimate_interval_at(&row->estimate, l->opts.tail, &low, &high);
		err = add_row(res, name_place(r, row, &place, name), (double)row->value, low, high);
	}
	vec_release(&places);
	return err;
}

static int judge_inuse(struct limits *l)
{
	struct limit_result *res = add_result(l, LIMIT_INUSE);
	struct report_options o;
	struct report *r = NULL;
	int err = open_rows(l, REPORT_BY_STACK, &o, &r);

	if (!err && check_inuse(r, res)) {
		take_estimate(l, r, &r->total, res);
		if (res->verdict != LIMIT_KEPT)
			err = add_holders(l, r, res);
	}
	report_close(r);
	return err;
}

/* Judge what ended tasks still hold. */
static int judge_exited(struct limits *l)
{
	struct limit_result *res = add_result(l, LIMIT_EXITED);
	struct report_options o;
	struct report *r = NULL;
	const struct report_row *row;
	int err = open_rows(l, REPORT_BY_INSTANCE, &o, &r);

	if (err || !check_inuse(r, res))
		goto out;
	if (!report_has_scopes(l->p) && !r->outstanding.cnt) {
		snprintf(res->why, sizeof(res->why),
			 "No sample has a scope; perhaps the program has no tags");
		goto out;
	}
	take_estimate(l, r, &r->outstanding_total, res);
	vec_each(&r->outstanding, row) {
		double low = NAN, high = NAN;

		if (err || res->verdict == LIMIT_KEPT)
			continue;
		if (r->has_interval)
			estimate_interval_at(&row->estimate, l->opts.tail, &low, &high);
		err = add_row(res, strset_get(r->names, row->name), (double)row->value, low, high);
	}
out:
	report_close(r);
	return err;
}

/* ---- more than before ---- */

/*
 * value is after - before. The limit is a part q of before, or a number of bytes: compare after -
 * (1 + q) before with 0, or after - before with the bytes. The interval is that of report_diff.c,
 * with this confidence.
 */
static void compare_totals(const struct limits *l, const struct diff *d, struct limit_result *res)
{
	double low[2], high[2], value[2];
	double share = l->opts.is_share[LIMIT_MORE] ? l->opts.limit[LIMIT_MORE] : 0;

	for (int i = 0; i < 2; i++) {
		const struct report_row *row = &d->total.at[i];

		value[i] = (double)row->value;
		estimate_interval_at(&row->estimate, l->opts.tail, &low[i], &high[i]);
	}
	res->before = value[0];
	res->value = value[1] - value[0];
	res->low = res->value - hypot(value[1] - low[1], (1 + share) * (high[0] - value[0]));
	res->high = res->value + hypot(high[1] - value[1], (1 + share) * (value[0] - low[0]));
	if (l->opts.is_share[LIMIT_MORE])
		res->limit = share * value[0];
}

static int add_larger_rows(const struct diff *d, struct limit_result *res)
{
	const struct diff_row *row;
	int err = 0;

	vec_each(&d->rows, row)
		if (!err && row->is_significant && row->delta > 0)
			err = add_row(res, strset_get(d->names, row->name), row->delta, row->low,
				      row->high);
	return err;
}

static int judge_more(struct limits *l, const struct profile *before)
{
	struct limit_result *res = add_result(l, LIMIT_MORE);
	struct report_options o = { .by = REPORT_BY_STACK,
				    .format = REPORT_JSON,
				    .value = REPORT_VALUE_INUSE };
	struct err why = { 0 };
	struct diff d;
	int err;

	if (l->opts.is_share[LIMIT_MORE])
		res->limit = NAN;
	err = diff_open(before, l->opts.before_name, l->p, "this recording", &o, &d, &why);
	if (err == -EINVAL) { /* why has the reason */
		err = 0;
		if (d.side[1].r && d.side[1].r->is_unknown)
			say_unknown(l->p, res);
		else if (d.side[0].r && d.side[0].r->is_unknown)
			snprintf(res->why, sizeof(res->why), "In use is unknown in the baseline");
		else
			snprintf(res->why, sizeof(res->why), "%.*s", (int)sizeof(res->why) - 1,
				 why.text[0] ? why.text : "The profiles cannot be compared");
		goto out;
	}
	if (err || !check_inuse(d.side[0].r, res) || !check_inuse(d.side[1].r, res))
		goto out;
	if (isnan(d.total.low)) {
		snprintf(res->why, sizeof(res->why),
			 "One of the profiles has no confidence intervals");
		goto out;
	}
	compare_totals(l, &d, res);
	decide(d.side[1].r, res);
	if (res->verdict == LIMIT_BROKEN && (d.side[0].r->is_lossy || is_since(d.side[0].r))) {
		res->verdict = LIMIT_UNKNOWN;
		snprintf(res->why, sizeof(res->why),
			 "The baseline has losses: it may have had as much in use");
	}
	advise_rate(d.side[1].r, res);
	if (res->verdict != LIMIT_KEPT)
		err = add_larger_rows(&d, res);
out:
	diff_release(&d);
	return err;
}

/* ---- all ---- */

static enum limit_verdict sum_up(const struct limits *l)
{
	enum limit_verdict all = LIMIT_KEPT;

	for (size_t i = 0; i < l->cnt; i++) {
		if (l->results[i].verdict == LIMIT_BROKEN)
			return LIMIT_BROKEN;
		if (l->results[i].verdict == LIMIT_UNKNOWN)
			all = LIMIT_UNKNOWN;
	}
	return all;
}

/*
 * Limits of resident memory by row, which was read from the process and not sampled.
 *
 * A value is certain but for what could not be read, and what changed during the reading: that takes some time, so none is
 * called exact. Memory that nobody owns may be
 * of an allocator whose blocks were recorded, but whose heap was not read: so what is held beyond the growth of the heaps
 * that were read is no unexplained growth.
 */

#define DOUBT_MOVED "memory changed while it was read"
#define DOUBT_OUTSIDE "the process grew before the first or after the last reading of its memory"

static double at_end(const struct profile *p, enum resident_kind kind)
{
	return (double)resident_bytes(p, kind, true);
}

static double growth_of(const struct profile *p, enum resident_kind kind)
{
	return at_end(p, kind) - (double)resident_bytes(p, kind, false);
}

/* false: why is set. */
static bool check_rows(const struct limits *l, bool wants_begin, struct limit_result *res)
{
	const struct resident_rows *rows = &l->p->resident;
	char words[RESIDENT_WORDS];

	if (l->opts.is_share[res->kind])
		res->limit = NAN;
	if (!l->p->recording.is_known || !rows->is_asked) {
		snprintf(res->why, sizeof(res->why),
			 "Resident memory by row is unknown: it is read only when one running "
			 "process is recorded");
		return false;
	}
	if (rows->end.is_known && l->opts.is_share[res->kind])
		res->limit = l->opts.limit[res->kind] * (double)rows->end.rss_bytes;
	if (rows->end.is_known && (rows->begin.is_known || !wants_begin))
		return true;
	snprintf(res->why, sizeof(res->why), "Resident memory is unknown: %.640s",
		 resident_why_words(l->p, words));
	return false;
}

/* doubt: why it is not certain, if nothing else is known. */
static void decide_rows(const struct limits *l, const char *doubt, struct limit_result *res)
{
	char words[RESIDENT_WORDS];

	if (res->low > res->limit)
		res->verdict = LIMIT_BROKEN;
	else if (res->high <= res->limit)
		res->verdict = LIMIT_KEPT;
	else if (resident_why_words(l->p, words)[0])
		snprintf(res->why, sizeof(res->why), "It is uncertain: %.640s", words);
	else
		snprintf(res->why, sizeof(res->why), "It is uncertain: %s", doubt);
}

static int add_rows(const struct limits *l, struct limit_result *res, enum resident_kind kind,
		    bool is_growth)
{
	const struct resident_row *row;
	int err = 0;

	vec_each(&l->p->resident.list, row) {
		double value = (double)row->end_bytes - (is_growth ? (double)row->begin_bytes : 0);

		if (!err && row->kind == kind && value > 0)
			err = add_row(res, profile_text(l->p, row->name_str), value, value, value);
	}
	return err;
}

/* What is held beyond the growth of heaps that were read; NAN: not known. */
static int find_other_held(const struct limits *l, double *ret)
{
	struct report_options o = { .by = REPORT_BY_STACK,
				    .format = REPORT_JSON,
				    .value = REPORT_VALUE_INUSE };
	struct report *r = NULL;
	int err = report_open(l->p, &o, &r);

	*ret = NAN;
	if (!err && r->is_inuse && !r->is_unknown)
		*ret = fmax((double)r->total.value - growth_of(l->p, RESIDENT_LIVE), 0);
	report_close(r);
	return err;
}

static int judge_unexplained(struct limits *l)
{
	struct limit_result *res = add_result(l, LIMIT_UNEXPLAINED);
	const struct profile *p = l->p;
	double moved, heap = 0, other, outside = resident_growth_outside(p);
	int err;

	if (!check_rows(l, true, res))
		return 0;
	err = find_other_held(l, &other);
	if (err)
		return err;
	moved = fabs(at_end(p, RESIDENT_MOVED)) +
		fabs((double)resident_bytes(p, RESIDENT_MOVED, false));
	/* If a heap was not read each time, its rows come and go. */
	if (!p->resident.begin.is_proved || !p->resident.end.is_proved)
		heap = growth_of(p, RESIDENT_LIVE) + growth_of(p, RESIDENT_FREE) +
		       growth_of(p, RESIDENT_METADATA);
	res->value = growth_of(p, RESIDENT_UNREAD) + growth_of(p, RESIDENT_UNOWNED) + heap;
	res->high = fmax(res->value + moved + outside, 0);
	if (p->resident.begin.is_proved && p->resident.end.is_proved && !isnan(other))
		res->low = fmax(res->value - moved - other, 0);
	else
		res->low = 0;
	res->value = fmax(res->value, 0);
	decide_rows(l,
		    outside > moved ? DOUBT_OUTSIDE :
		    other > moved   ? "it may be blocks of an allocator whose heap was not read" :
				      DOUBT_MOVED,
		    res);
	if (res->verdict != LIMIT_KEPT)
		err = add_rows(l, res, RESIDENT_UNREAD, true);
	if (!err && res->verdict != LIMIT_KEPT)
		err = add_rows(l, res, RESIDENT_UNOWNED, true);
	return err;
}

static int judge_retained(struct limits *l)
{
	struct limit_result *res = add_result(l, LIMIT_RETAINED);
	const struct profile *p = l->p;
	double moved = fabs(at_end(p, RESIDENT_MOVED));

	if (!check_rows(l, false, res))
		return 0;
	res->value = at_end(p, RESIDENT_FREE);
	res->low = fmax(res->value - moved, 0);
	/* All that nobody owns may be freed memory of a heap that was not read. */
	res->high = res->value + moved + at_end(p, RESIDENT_UNREAD) +
		    (p->resident.end.is_proved ? 0 : at_end(p, RESIDENT_UNOWNED));
	decide_rows(l, DOUBT_MOVED, res);
	return res->verdict == LIMIT_KEPT ? 0 : add_rows(l, res, RESIDENT_FREE, false);
}

int limits_judge(const struct profile *p, const struct profile *before,
		 const struct limit_options *opts, struct limits *ret)
{
	int err = 0;

	*ret = (struct limits){ .p = p, .opts = *opts };
	if (opts->is_asked[LIMIT_GROWTH])
		err = judge_growth(ret);
	if (!err && opts->is_asked[LIMIT_INUSE])
		err = judge_inuse(ret);
	if (!err && opts->is_asked[LIMIT_MORE])
		err = judge_more(ret, before);
	if (!err && opts->is_asked[LIMIT_EXITED])
		err = judge_exited(ret);
	if (!err && opts->is_asked[LIMIT_UNEXPLAINED])
		err = judge_unexplained(ret);
	if (!err && opts->is_asked[LIMIT_RETAINED])
		err = judge_retained(ret);
	for (size_t i = 0; i < ret->cnt; i++) {
		choose_rows(ret, &ret->results[i]);
		make_printable(ret->results[i].why); /* it contains others' names */
	}
	ret->verdict = sum_up(ret);
	return err;
}

void limits_fail(struct limits *l, const char *failure)
{
	snprintf(l->failure, sizeof(l->failure), "%s", failure);
	l->verdict = LIMIT_UNKNOWN;
}

void limits_release(struct limits *l)
{
	for (size_t i = 0; i < l->cnt; i++) {
		struct limit_row *row;

		vec_each(&l->results[i].rows, row)
			free(row->name);
		vec_release(&l->results[i].rows);
	}
}
