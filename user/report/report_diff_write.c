/* SPDX-License-Identifier: MIT */
/* report_diff_write.c - a difference as text and as JSON. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "profile/witness.h"
#include "report/report_diff_rows.h"
#include "report/report_text.h"

#define CELL_COLUMNS 52 /* columns in front of a name */

static char *format_delta(const struct diff *d, const struct diff_row *row, char *buf,
			  size_t buf_bytes)
{
	char text[32];

	snprintf(buf, buf_bytes, "%s%s", row->delta > 0 ? "+" : "",
		 report_format_value(d->side[1].r, row->delta, text));
	return buf;
}

/* "+1.2 MiB to +3.4 MiB" */
static char *format_interval(const struct diff *d, const struct diff_row *row, char *buf,
			     size_t buf_bytes)
{
	char low[32], high[32];

	report_format_value(d->side[1].r, row->low, low);
	report_format_value(d->side[1].r, row->high, high);
	if (!strcmp(low, high)) /* "155 MiB to 155 MiB" would say nothing */
		snprintf(buf, buf_bytes, "%s%s", row->low > 0 ? "+" : "", low);
	else
		snprintf(buf, buf_bytes, "%s%s to %s%s", row->low > 0 ? "+" : "", low,
			 row->high > 0 ? "+" : "", high);
	return buf;
}

/* Both ends in one unit: "+1.2 +3.4 MiB". */
static char *format_short_interval(const struct diff *d, const struct diff_row *row, char *buf,
				   size_t buf_bytes)
{
	double larger = fmax(fabs(row->low), fabs(row->high)), unit = 1;
	char text[32];

	if (isnan(row->low)) {
		buf[0] = 0;
		return buf;
	}
	if (row->low == row->high) {
		snprintf(buf, buf_bytes, "exact");
		return buf;
	}
	while (larger / unit >= 1024)
		unit *= 1024;
	/* take the unit's word from behind the number */
	report_format_value(d->side[1].r, larger, text);
	snprintf(buf, buf_bytes, "%+.3g %+.3g%s", row->low / unit, row->high / unit,
		 strchr(text, ' ') ? strchr(text, ' ') : "");
	return buf;
}

static const char *verdict(const struct diff_row *row)
{
	return isnan(row->low)	     ? "significance unknown" :
	       row->low == row->high ? "exact" :
	       row->is_significant   ? "beyond sampling noise" :
				       "within sampling noise";
}

static void put_cells(const struct diff *d, const struct diff_row *row, FILE *out)
{
	char delta[40], interval[40], value[32];

	fprintf(out, "%11s  %-17s", format_delta(d, row, delta, sizeof(delta)),
		format_short_interval(d, row, interval, sizeof(interval)));
	for (int i = 0; i < 2; i++)
		fprintf(out, " %9s",
			row->is_in[i] ?
				report_format_value(d->side[i].r, (double)row->at[i].value, value) :
			i ? "gone" :
			    "new");
}

/* The growth of the process that the rows cannot explain. */
static void find_unexplained(const struct diff *d, struct witness *ret)
{
	*ret = (struct witness){ 0 };
	if (d->side[1].r->is_inuse && !d->opts->scope)
		witness_compare(d->side[0].r->p, d->side[1].r->p, ret);
}

void diff_write_head(const struct diff *d, FILE *out)
{
	const struct report *r = d->side[1].r;
	char delta[40], interval[80], a[32], b[32], name[2][REPORT_FIT_BUF], words[WITNESS_WORDS];
	struct witness w;

	for (int i = 0; i < 2; i++)
		report_fit_name(d->side[i].name, sizeof(name[i]) / 2, name[i]);
	fprintf(out, "%s -> %s\n", name[0], name[1]);
	fprintf(out, "%s: %s -> %s: %s", r->is_inuse ? "Held" : report_value_title(r),
		report_format_value(d->side[0].r, (double)d->total.at[0].value, a),
		report_format_value(r, (double)d->total.at[1].value, b),
		format_delta(d, &d->total, delta, sizeof(delta)));
	if (!isnan(d->total.low) && d->total.low != d->total.high)
		fprintf(out, " (%s, 95 %%)",
			format_interval(d, &d->total, interval, sizeof(interval)));
	fprintf(out, ": %s\n", verdict(&d->total));
	find_unexplained(d, &w);
	if (w.is_unexplained)
		report_put_wrapped(witness_words(&w, words), 2, report_columns(r), out);
}

static int put_rows(const struct diff *d, FILE *out)
{
	const struct report *r = d->side[1].r;
	struct report_named_place place;
	struct report_names names;
	int err = report_names_init(&names, r, CELL_COLUMNS);

	for (size_t i = 0; i < d->shown_cnt && !err; i++) {
		diff_name_row(d, &d->rows.data[i], &place);
		err = report_names_add(&names, &place);
	}
	for (size_t i = 0; i < d->shown_cnt && !err; i++) {
		report_paint(r, REPORT_BOLD, out);
		put_cells(d, &d->rows.data[i], out);
		report_paint(r, REPORT_PLAIN, out);
		fputs("  ", out);
		diff_name_row(d, &d->rows.data[i], &place);
		report_names_put(&names, &place, out);
	}
	report_names_release(&names);
	return err;
}

static int put_text(const struct diff *d, FILE *out)
{
	char a[32];
	int err;

	diff_write_head(d, out);
	if (d->shown_cnt)
		fprintf(out, "%11s  %-17s %9s %9s  WHERE\n", "CHANGE", "95 % INTERVAL", "BEFORE",
			"AFTER");
	err = put_rows(d, out);
	if (!d->rest_cnt || err)
		return err;
	if (d->opts->by ==
	    REPORT_BY_SCOPE) /* a scope is part of those above it: their sum means nothing */
		fprintf(out, "%50s", "");
	else
		put_cells(d, &d->rest, out);
	fprintf(out, "  %s%s row%s", d->shown_cnt ? "the other " : "",
		format_count((double)d->rest_cnt, a, sizeof(a)), d->rest_cnt == 1 ? "" : "s");
	if (d->chance_cnt == d->rest_cnt)
		fputs(": unchanged (within sampling noise)", out);
	else if (d->chance_cnt)
		fprintf(out, ", %zu of them unchanged (within sampling noise)", d->chance_cnt);
	fputc('\n', out);
	return 0;
}

static void put_json_row(const struct diff *d, const struct diff_row *row, const char *key,
			 const char *name, struct json *j)
{
	bool is_inuse = d->side[1].r->is_inuse;

	json_begin(j, key, '{');
	json_text(j, "name", name);
	json_number(j, is_inuse ? "inuse_bytes_before" : "value_before", 0,
		    row->is_in[0] ? (double)row->at[0].value : NAN);
	json_number(j, is_inuse ? "inuse_bytes_after" : "value_after", 0,
		    row->is_in[1] ? (double)row->at[1].value : NAN);
	json_number(j, is_inuse ? "inuse_bytes_delta" : "value_delta", 0, row->delta);
	json_number(j, is_inuse ? "inuse_bytes_delta_low" : "value_delta_low", 0, row->low);
	json_number(j, is_inuse ? "inuse_bytes_delta_high" : "value_delta_high", 0, row->high);
	if (isnan(row->low))
		json_null(j, "is_significant");
	else
		json_bool(j, "is_significant", row->is_significant);
	json_end(j, '}');
}

static void put_json(const struct diff *d, FILE *out)
{
	struct json j = { .out = out };
	struct witness w;

	find_unexplained(d, &w);
	json_begin(&j, NULL, '{');
	json_text(&j, "before", d->side[0].name);
	json_text(&j, "after", d->side[1].name);
	put_json_row(d, &d->total, "total", "total", &j);
	json_number(&j, "unexplained_bytes", 0,
		    w.is_unexplained ? w.growth_bytes - w.held_bytes : NAN);
	json_begin(&j, "rows", '[');
	for (size_t i = 0; i < d->shown_cnt; i++) {
		json_line(&j);
		put_json_row(d, &d->rows.data[i], NULL, strset_get(d->names, d->rows.data[i].name),
			     &j);
	}
	json_end(&j, ']');
	json_format(&j, "omitted_cnt", "%zu", d->rest_cnt);
	json_format(&j, "chance_cnt", "%zu", d->chance_cnt);
	json_end(&j, '}');
	fputc('\n', out);
}

int diff_write(const struct diff *d, FILE *out)
{
	if (d->opts->format != REPORT_JSON)
		return put_text(d, out);
	put_json(d, out);
	return 0;
}
