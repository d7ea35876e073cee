/* SPDX-License-Identifier: MIT */
/*
 * limits_rows.c - limits of resident memory by row, which was read from the process and not sampled.
 *
 * A value is certain but for what could not be read, and what changed during the reading: that takes some time, so none is
 * called exact. Memory that nobody owns may be
 * of an allocator whose blocks were recorded, but whose heap was not read: so what is held beyond the growth of the heaps
 * that were read is no unexplained growth.
 */
#include <math.h>
#include <stdio.h>

#include "profile/profile.h"
#include "profile/resident_words.h"
#include "report/limits_priv.h"
#include "report/report.h"
#include "report/report_rows.h"

#define DOUBT_MOVED "memory changed while it was read"
#define DOUBT_OUTSIDE "the process grew before its memory was read, or after that"

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
static void decide(const struct limits *l, const char *doubt, struct limit_result *res)
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
			err = limits_add_row(res, profile_text(l->p, row->name_str), value, value,
					     value);
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

int limits_judge_unexplained(struct limits *l)
{
	struct limit_result *res = limits_add_result(l, LIMIT_UNEXPLAINED);
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
	decide(l,
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

int limits_judge_retained(struct limits *l)
{
	struct limit_result *res = limits_add_result(l, LIMIT_RETAINED);
	const struct profile *p = l->p;
	double moved = fabs(at_end(p, RESIDENT_MOVED));

	if (!check_rows(l, false, res))
		return 0;
	res->value = at_end(p, RESIDENT_FREE);
	res->low = fmax(res->value - moved, 0);
	/* All that nobody owns may be freed memory of a heap that was not read. */
	res->high = res->value + moved + at_end(p, RESIDENT_UNREAD) +
		    (p->resident.end.is_proved ? 0 : at_end(p, RESIDENT_UNOWNED));
	decide(l, DOUBT_MOVED, res);
	return res->verdict == LIMIT_KEPT ? 0 : add_rows(l, res, RESIDENT_FREE, false);
}
