/* SPDX-License-Identifier: MIT */
/*
 * report_growth_html.c - what grows, as a part of a page of heaptap serve: no script, names as
 * text.
 *
 * A row has two verdicts: for the last hour, and for the whole time of the profile. Both use the
 * same samples but different moments: two reports of one profile, with the same rows.
 */

#include "base/printable.h"
#include "base/units.h"
#include "report/report.h"
#include "report/report_places.h"
#include "report/report_rows.h"
#include "report/report_text.h"

#define HOUR_NS (3600 * 1000000000LL)
#define NAME_COLUMNS 100
#define CELL_RATE "<td class=\"num\">"

struct table {
	struct report_options opts[2];
	struct report *r[2]; /* of the last hour, of the whole time */
	struct report_places rows[2];
	uint32_t *order;
};

static void put_text(const char *text, FILE *out)
{
	markup_put(text, strlen(text), out);
}

static void put_rate(double bytes_per_s, FILE *out)
{
	char text[UNITS_BUF];
	double bytes = 60 * bytes_per_s;

	fprintf(out, "%s%s",
		bytes > 0 ? "+" :
		bytes < 0 ? "-" :
			    "",
		format_bytes(fabs(bytes), text, sizeof(text)));
}

static void put_verdict(const struct growth *g, FILE *out)
{
	if (g->verdict == GROWTH_GROWS)
		fputs("<b>grows</b>", out);
	else if (g->verdict == GROWTH_STEADY)
		fputs("steady", out);
	else if (g->has_grown) /* the interval is clear: what is open is whether it goes on */
		fprintf(out, "grew; about %.0f min more would show whether it still grows",
			ceil(g->more_s / 60));
	else if (g->more_s > 0)
		fprintf(out, "inconclusive: about %.0f min more", ceil(g->more_s / 60));
	else
		fputs("inconclusive", out);
}

static void put_growth(const struct report *r, const struct report_row *row, FILE *out)
{
	struct growth g;

	if (row->growth.is_partial) { /* later it will not be known, either */
		fputs(CELL_RATE "<td>inconclusive", out);
		return;
	}
	if (!report_growth(r, row, 1, &g)) {
		fputs(CELL_RATE "<td>", out);
		put_verdict(&g, out);
		return;
	}
	fputs(CELL_RATE, out);
	put_rate(g.bytes_per_s, out);
	fputs(" <small>", out);
	put_rate(g.low, out);
	fputs(" to ", out);
	put_rate(g.high, out);
	fputs("</small><td>", out);
	put_verdict(&g, out);
}

static void put_name(const struct report *r, const struct report_row *row, FILE *out)
{
	struct report_named_place place;
	char text[REPORT_FIT_BUF];

	report_name_row(r, row, &place);
	put_text(report_fit_named(&place.own, NAME_COLUMNS, text), out);
	if (place.hint)
		fprintf(out, " (%s)", place.hint);
	for (size_t i = 0; i < place.caller_cnt; i++) {
		fputs(i ? " &lt; " : "<br>from ", out);
		put_text(report_fit_named(&place.caller[i], NAME_COLUMNS, text), out);
	}
}

/* For the chart of the largest rows: how long before the end each window of the whole time is, in seconds. */
static void put_ages(const struct table *t, FILE *out)
{
	const struct growth_plan *plan = &t->r[1]->growth_plan;

	if (!plan->is_known)
		return;
	fputs(" data-ages=\"", out);
	for (int w = 0; w < GROWTH_WINDOW_CNT; w++)
		fprintf(out, "%s%.0f", w ? " " : "",
			(double)t->r[1]->p->recording.duration_ns / 1e9 - plan->time_s[w]);
	fputc('"', out);
}

/* What the row had in use in these windows. */
static void put_means(const struct table *t, size_t i, FILE *out)
{
	const struct growth_sums *sums = &t->rows[1].data[i].growth;

	if (!t->r[1]->growth_plan.is_known || sums->is_partial)
		return;
	fputs(" data-means=\"", out);
	for (int w = 0; w < GROWTH_WINDOW_CNT; w++)
		fprintf(out, "%s%.0f", w ? " " : "", sums->mean_bytes[w]);
	fputc('"', out);
}

static void put_row(const struct table *t, size_t i, FILE *out)
{
	const struct report_row *row = &t->rows[0].data[i];
	char text[UNITS_BUF];

	fputs("<tr", out);
	put_means(t, i, out);
	fprintf(out, ">" CELL_RATE "%s", format_bytes((double)row->value, text, sizeof(text)));
	for (int k = 0; k < 2; k++)
		put_growth(t->r[k], &t->rows[k].data[i], out);
	fputs("<td class=\"where\">", out);
	put_name(t->r[0], row, out);
	fputc('\n', out);
}

/* Rows that grow within the hour first, then within the whole time, fastest first; then the largest. */
static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct table *t = ctx;
	const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;

	for (int k = 0; k < 2; k++) {
		const struct report_row *x = &t->rows[k].data[i], *y = &t->rows[k].data[j];

		if (!x->growth_rank != !y->growth_rank)
			return x->growth_rank ? 1 : -1;
		if (!x->growth_rank && x->growth_bytes_per_s != y->growth_bytes_per_s)
			return x->growth_bytes_per_s > y->growth_bytes_per_s ? -1 : 1;
	}
	if (t->rows[0].data[i].value != t->rows[0].data[j].value)
		return t->rows[0].data[i].value > t->rows[0].data[j].value ? -1 : 1;
	return (i > j) - (i < j);
}

static int open_table(const struct profile *p, enum report_by by, struct table *t)
{
	int64_t before_ns = p->recording.duration_ns - HOUR_NS;
	struct report *r;
	int err = 0;

	for (int k = 0; k < 2 && !err; k++) {
		t->opts[k] = (struct report_options){ .by = by, .format = REPORT_JSON };
		if (!k && before_ns > 0)
			t->opts[k].warm_up_ns = (uint64_t)before_ns;
		err = report_open(p, &t->opts[k], &r);
		if (err)
			return err;
		t->r[k] = r;
		err = report_find_places(r, &t->rows[k]);
		for (size_t i = 0; i < t->rows[k].cnt && !err; i++)
			report_rank_growth(r, &t->rows[k].data[i]);
	}
	if (err)
		return err;
	t->order = calloc(t->rows[0].cnt + 1, sizeof(*t->order));
	if (!t->order)
		return -ENOMEM;
	for (size_t i = 0; i < t->rows[0].cnt; i++)
		t->order[i] = (uint32_t)i;
	qsort_r(t->order, t->rows[0].cnt, sizeof(*t->order), compare_rows, t);
	return 0;
}

static void close_table(struct table *t)
{
	for (int k = 0; k < 2; k++) {
		vec_release(&t->rows[k]);
		report_close(t->r[k]);
	}
	free(t->order);
}

static void put_titles(const struct table *t, bool is_by_stack, FILE *out)
{
	const char *by = is_by_stack ? "stack" : "scope";

	fprintf(out,
		"<h2>What grows, by %s</h2>\n<div class=\"sheet wide-table\"><table class=\"growth "
		"by-%s\"",
		by, by);
	put_ages(t, out);
	fprintf(out,
		"><tr><th class=\"num\">In use<th class=\"num\">Growth/min (1 h)<th><th "
		"class=\"num\">Growth/min (24 h)<th><th class=\"where\">%s\n",
		is_by_stack ? "Where" : "Scope");
}

static int put_table(const struct profile *p, enum report_by by, size_t row_cap, FILE *out)
{
	struct table t = { 0 };
	int err = open_table(p, by, &t);

	for (size_t i = 0; i < t.rows[0].cnt && i < row_cap && !err; i++) {
		if (!i)
			put_titles(&t, by == REPORT_BY_STACK, out);
		put_row(&t, t.order[i], out);
	}
	if (!err && t.rows[0].cnt)
		fputs("</table></div>\n", out);
	if (!err && t.rows[0].cnt > row_cap)
		fprintf(out,
			"<p>And %zu more: <a href=\"growth%s\">all of them, as JSON</a>.</p>\n",
			t.rows[0].cnt - row_cap, by == REPORT_BY_STACK ? "" : "?by=scope");
	close_table(&t);
	return err;
}

int report_growth_table(const struct profile *p, size_t row_cap, FILE *out)
{
	int err = put_table(p, REPORT_BY_STACK, row_cap, out);

	return err || !report_has_scopes(p) ? err : put_table(p, REPORT_BY_SCOPE, row_cap, out);
}
