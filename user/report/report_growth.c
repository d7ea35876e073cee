/* SPDX-License-Identifier: MIT */
/*
 * report_growth.c - what grows: the cells of a table for people, and one sentence.
 *
 * Stacks charged to the same place are one row, as in the other text by stack. So what leaks
 * through many callers of one function is one growing row, with all its samples.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "report/report.h"
#include "report/report_places.h"
#include "report/report_rows.h"
#include "report/report_text.h"

/* "+10.1 KiB/s" */
static char *format_rate(double bytes_per_s, char buf[REPORT_INTERVAL_BUF])
{
	char text[UNITS_BUF];

	format_bytes(fabs(bytes_per_s), text, sizeof(text));
	snprintf(buf, REPORT_INTERVAL_BUF, "%s%s/s",
		 bytes_per_s > 0 ? "+" :
		 bytes_per_s < 0 ? "-" :
				   "",
		 text);
	return buf;
}

/* Both ends in one unit: "+7.9 +12.5 KiB/s". */
static char *format_interval(const struct growth *g, char buf[REPORT_INTERVAL_BUF])
{
	double larger = fmax(fabs(g->low), fabs(g->high)), unit = 1;
	char text[UNITS_BUF];
	const char *word;

	while (larger / unit >= 1024)
		unit *= 1024;
	format_bytes(larger, text, sizeof(text));
	word = strrchr(text, ' ');
	if (g->low == g->high)
		snprintf(buf, REPORT_INTERVAL_BUF, "exact");
	else
		snprintf(buf, REPORT_INTERVAL_BUF, "%+.3g %+.3g%s/s", g->low / unit, g->high / unit,
			 word ? word : "");
	return buf;
}

static void format_verdict(const struct growth *g, char buf[REPORT_INTERVAL_BUF])
{
	bool is_minutes = g->more_s >= 180;

	snprintf(buf, REPORT_INTERVAL_BUF, "%s",
		 g->verdict == GROWTH_GROWS  ? "grows" :
		 g->verdict == GROWTH_STEADY ? "steady" :
					       "?");
	if (g->verdict == GROWTH_UNKNOWN && g->more_s > 0)
		snprintf(buf, REPORT_INTERVAL_BUF, "%s %.0f %s%s", g->has_grown ? "grew?" : "?",
			 is_minutes ? g->more_s / 60 : g->more_s, is_minutes ? "min" : "s",
			 g->has_grown ? "" : " more");
}

char *report_format_growth(const struct report *r, const struct report_row *row,
			   enum report_cell cell, char *buf)
{
	struct growth g;
	bool is_known = report_growth(r, row, 1, &g);

	if (cell == REPORT_CELL_VERDICT)
		format_verdict(&g, buf);
	else if (cell == REPORT_CELL_GROWTH_INTERVAL && is_known)
		format_interval(&g, buf);
	else if (cell == REPORT_CELL_GROWTH && is_known)
		format_rate(g.bytes_per_s, buf);
	else
		snprintf(buf, REPORT_INTERVAL_BUF, "%s",
			 cell == REPORT_CELL_GROWTH ? "unknown" : "");
	return buf;
}

/* A row that holds nothing at the end does not grow. */
bool report_row_has_inuse(const struct report_row *row)
{
	return row->value || row->estimate.samples;
}

void report_put_growth_legend(const struct report *r, const struct report_row *rows, size_t cnt,
			      FILE *out)
{
	bool has_grown = false, has_unknown = false;
	struct growth g;

	for (size_t i = 0; i < cnt; i++) {
		report_growth(r, &rows[i], 1, &g);
		has_grown |= g.verdict == GROWTH_UNKNOWN && g.has_grown;
		has_unknown |= g.verdict == GROWTH_UNKNOWN && !g.has_grown;
	}
	if (has_grown)
		report_put_wrapped(
			"grew? growth slowed down, or old blocks are being freed: it may only be "
			"warming up; record for about this much longer",
			2, report_columns(r), out);
	if (has_unknown)
		report_put_wrapped(
			"? inconclusive: record for about this much longer, or with a finer --rate",
			2, report_columns(r), out);
}

/* The number of rows searched and of growing rows, and the one that grows most. */
struct finding {
	size_t row_cnt, grows_cnt;
	struct growth growth;
	char name[REPORT_GROWS_BUF / 2];
};

static void name_row(const struct report *r, const struct report_row *row, struct finding *ret)
{
	struct report_named_place place;
	char text[REPORT_FIT_BUF];

	if (r->opts->by == REPORT_BY_SCOPE) {
		report_fit_name(strset_get(r->names, row->scope.path ? row->scope.path : row->name),
				80, text);
		snprintf(ret->name, sizeof(ret->name), "scope %.400s", text);
		return;
	}
	report_name_place(r, row, &place);
	snprintf(ret->name, sizeof(ret->name), "%.480s", report_fit_named(&place.own, 80, text));
}

static void find_in(const struct report *r, const struct report_places *rows, size_t row_cnt,
		    struct finding *ret)
{
	for (size_t i = 0; i < rows->cnt; i++) {
		struct growth g;

		if (!report_growth(r, &rows->data[i], row_cnt, &g) || g.verdict != GROWTH_GROWS)
			continue;
		if (!ret->grows_cnt || g.bytes_per_s > ret->growth.bytes_per_s) {
			report_growth(r, &rows->data[i], 1, &ret->growth);
			name_row(r, &rows->data[i], ret);
		}
		ret->grows_cnt++;
	}
}

/* Search stacks first. A scope is named if it is not known which of its stacks grows. */
int report_grows(const struct profile *p, char buf[REPORT_GROWS_BUF])
{
	static const enum report_by by[] = { REPORT_BY_STACK, REPORT_BY_SCOPE };
	struct report_options opts[2] = { 0 };
	struct report_places rows[2] = { 0 };
	struct report *r[2] = { 0 };
	struct finding found = { 0 };
	char rate[REPORT_INTERVAL_BUF], interval[REPORT_INTERVAL_BUF], more[32] = "";
	size_t row_cnt = 0, cnt = report_has_scopes(p) ? 2 : 1;
	int err = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < cnt && !err; i++) {
		opts[i].by = by[i];
		opts[i].format = REPORT_JSON; /* so that no row is folded */
		opts[i].sort = REPORT_SORT_GROWTH;
		err = report_open(p, &opts[i], &r[i]);
		if (!err)
			err = report_find_ranked(r[i], report_row_has_inuse, &rows[i]);
		row_cnt += rows[i].cnt;
	}
	for (size_t i = 0; i < cnt && !err && !found.grows_cnt; i++)
		find_in(r[i], &rows[i], row_cnt > 1 ? row_cnt : 2, &found);
	if (!err && found.grows_cnt) {
		if (found.grows_cnt > 1)
			snprintf(more, sizeof(more), "; and %zu more", found.grows_cnt - 1);
		snprintf(buf, REPORT_GROWS_BUF, "Grows: %s, %s (95 %%: %s)%s", found.name,
			 format_rate(found.growth.bytes_per_s, rate),
			 format_interval(&found.growth, interval), more);
	}
	for (size_t i = 0; i < cnt; i++) {
		vec_release(&rows[i]);
		report_close(r[i]);
	}
	return err;
}
