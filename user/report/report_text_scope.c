/* SPDX-License-Identifier: MIT */
/*
 * report_text_scope.c - the tables by scope and by instance.
 *
 * They have more columns than other tables, so the columns are narrower: the error bar is in per
 * cent of the row, a time on the profile's day has no date. What is held, how fast it grows and the
 * peak are always there; the other columns if the page has room beside the names. Scopes are
 * indented below their parents; a path that does not fit keeps its end.
 */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "report/report_rows.h"
#include "report/report_text.h"
#include "profile/scope_path.h"

#define NAME_COLUMNS_MIN 16
#define NAME_COLUMNS_GOOD 26
#define TASK_COLUMNS_GOOD 20
#define INDENT 2

/* Optional columns; the first is dropped last. */
enum column { COLUMN_ALLOC, COLUMN_ITSELF, COLUMN_OBJECTS, COLUMN_WHEN, COLUMN_SHARE, COLUMN_CNT };

struct columns {
	bool has[COLUMN_CNT];
	bool has_rate;
};

static struct columns choose_columns(const struct report *r, size_t taken)
{
	static const size_t width[COLUMN_CNT] = {
		[COLUMN_ALLOC] = 9, [COLUMN_ITSELF] = 9, [COLUMN_OBJECTS] = 8,
		[COLUMN_WHEN] = 9,  [COLUMN_SHARE] = 6,
	};
	bool is_tree = r->opts->by == REPORT_BY_SCOPE;
	size_t good = is_tree ? NAME_COLUMNS_GOOD : TASK_COLUMNS_GOOD;
	struct columns c = { .has_rate = is_tree && !isnan(report_per_minute(r, 0)) };
	const bool is_there[COLUMN_CNT] = {
		[COLUMN_ALLOC] = r->alloc_type >= 0,
		[COLUMN_ITSELF] = is_tree,
		[COLUMN_OBJECTS] = r->objects_type >= 0,
		[COLUMN_WHEN] = r->has_peaks,
		[COLUMN_SHARE] = true,
	};
	size_t used = taken + 11;

	used += (r->has_interval ? 12 : 0) + (c.has_rate ? 9 : 0) + (r->has_peaks ? 10 : 0);
	for (int i = 0; i < COLUMN_CNT; i++) {
		if (!is_there[i] || used + width[i] + good > report_columns(r))
			continue;
		c.has[i] = true;
		used += width[i];
	}
	return c;
}

static char *format_share(const struct report *r, int64_t value, char *buf)
{
	if (r->total.value && (double)value / (double)r->total.value >= 0.9995)
		snprintf(buf, UNITS_BUF, "100%%");
	else
		report_format_share(r, value, buf);
	return buf;
}

static char *format_when(const struct report *r, int64_t ns, char *buf)
{
	time_t when = ns / 1000000000, now = r->p->time_ns / 1000000000;
	bool is_same_day = when / 86400 == now / 86400;
	struct tm tm;

	if (ns <= 0 || !gmtime_r(&when, &tm) ||
	    !strftime(buf, UNITS_BUF, is_same_day ? "%H:%M:%S" : "%b %d", &tm))
		buf[0] = '\0';
	return buf;
}

static int put_peak(const struct report *r, const struct report_row *row, const struct columns *c,
		    FILE *out)
{
	const struct report_peak *p = &row->peak;
	char value[UNITS_BUF], when[UNITS_BUF] = "", shown[UNITS_BUF + 1] = "";
	int used;

	if (!r->has_peaks)
		return 0;
	if (p->is_known) {
		snprintf(shown, sizeof(shown), "%s%s", p->is_minimum ? ">" : "",
			 format_bytes((double)p->bytes, value, sizeof(value)));
		format_when(r, p->time_ns, when);
	}
	used = fprintf(out, " %9s", shown);
	if (c->has[COLUMN_WHEN])
		used += fprintf(out, " %8s", when);
	return used;
}

/* Return the width of the numbers. */
static int put_numbers(const struct report *r, const struct report_row *row,
		       const struct columns *c, FILE *out)
{
	char value[UNITS_BUF], interval[REPORT_INTERVAL_BUF];
	int used;

	report_paint(r, REPORT_BOLD, out);
	used = fprintf(out, "%8s", report_format_value(r, report_value(row), value));
	report_paint(r, REPORT_PLAIN, out);
	used += fprintf(out, "%c", report_is_weak(r, row) ? '?' : ' ');
	if (r->has_interval)
		used += fprintf(out, " %11s", report_format_short_interval(r, row, interval));
	if (c->has_rate)
		used += fprintf(out, " %8s",
				format_bytes(report_per_minute(r, row->value), value,
					     sizeof(value)));
	used += put_peak(r, row, c, out);
	if (c->has[COLUMN_ITSELF])
		used += fprintf(out, " %8s",
				report_format_value(r, (double)row->scope.exclusive.bytes, value));
	if (c->has[COLUMN_OBJECTS])
		used += fprintf(out, " %7s",
				format_count((double)row->objects, value, sizeof(value)));
	if (c->has[COLUMN_SHARE])
		used += fprintf(out, " %5s", format_share(r, row->value, value));
	if (c->has[COLUMN_ALLOC])
		used += fprintf(out, " %8s",
				row->task.has_no_alloc ?
					"" :
					format_bytes(report_alloc(row), value, sizeof(value)));
	fputs("  ", out);
	return used + 2;
}

static void put_titles(const struct report *r, const struct columns *c, FILE *out)
{
	char title[9];

	snprintf(title, sizeof(title), "%.8s", r->is_inuse ? "held" : report_value_title(r));
	for (size_t i = 0; title[i]; i++)
		title[i] = toupper((unsigned char)title[i]);
	if (!strcmp(title, "ALLOCATE")) /* no room for the D */
		snprintf(title, sizeof(title), "ALLOC");
	fprintf(out, "%8s ", title);
	if (r->has_interval)
		fprintf(out, " %11s", "+- 95 %");
	if (c->has_rate)
		fprintf(out, " %8s", "A MINUTE");
	if (r->has_peaks)
		fprintf(out, " %9s", "PEAK");
	if (c->has[COLUMN_WHEN])
		fprintf(out, " %8s", "AT (UTC)");
	if (c->has[COLUMN_ITSELF])
		fprintf(out, " %8s", "ITSELF");
	if (c->has[COLUMN_OBJECTS])
		fprintf(out, " %7s", "BLOCKS");
	if (c->has[COLUMN_SHARE])
		fprintf(out, " %5s", "SHARE");
	if (c->has[COLUMN_ALLOC])
		fprintf(out, " %8s", "ALLOC");
	fputs("  ", out);
}

static size_t room_of(const struct report *r, size_t used)
{
	size_t columns = report_columns(r);

	return columns > used + NAME_COLUMNS_MIN ? columns - used : NAME_COLUMNS_MIN;
}

static bool is_none(const struct report *r, const struct report_row *row)
{
	return row->scope.path && !strcmp(strset_get(r->names, row->scope.path), SCOPE_NONE);
}

void report_put_scopes(const struct report *r, FILE *out)
{
	const struct columns c = choose_columns(r, 0);
	const struct report_row *row;

	put_titles(r, &c, out);
	fputs("SCOPE\n", out);
	vec_each(&r->rows, row) {
		int indent = INDENT * (int)row->scope.depth;
		char title[REPORT_INTERVAL_BUF];
		int used = put_numbers(r, row, &c, out);

		used += fprintf(out, "%*s", indent, "");
		report_put_name(out, report_row_title(r, row, title), room_of(r, used));
		fputc('\n', out);
	}
	if (r->rows.cnt == 1 && !r->opts->scope && is_none(r, r->rows.data))
		report_put_wrapped("No sample has a scope: the program says none (see "
				   "heaptap/scope.h).",
				   2, report_columns(r), out);
	report_put_tenants(r, out);
}

static void put_instance(const struct report *r, const struct report_row *row, int id_columns,
			 const struct columns *c, FILE *out)
{
	static const char *const states[] = {
		[REPORT_STATE_UNKNOWN] = "",
		[REPORT_STATE_LIVE] = "live",
		[REPORT_STATE_EXITED] = "exited",
	};
	const char *pid = strset_get(r->names, row->task.pid);
	char title[REPORT_INTERVAL_BUF];
	int used = put_numbers(r, row, c, out);

	if (!row->task.is_task) {
		report_put_name(out, report_row_title(r, row, title), room_of(r, used));
		fputc('\n', out);
		return;
	}
	used += fprintf(out, "%-6s  %*" PRIu64 "  ", states[row->task.state], id_columns,
			(uint64_t)row->task.id);
	if (pid[0])
		used += fprintf(out, "[%.10s] ", pid);
	report_put_tail(out, strset_get(r->names, row->scope.path), room_of(r, used));
	fputc('\n', out);
}

static int widest_id(const struct report_row *rows, size_t cnt)
{
	int widest = (int)strlen("TASK");

	for (size_t i = 0; i < cnt; i++) {
		int n = snprintf(NULL, 0, "%" PRIu64, (uint64_t)rows[i].task.id);

		if (n > widest)
			widest = n;
	}
	return widest;
}

static bool has_pid(const struct report_row *rows, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		if (rows[i].task.pid)
			return true;
	return false;
}

static void put_instance_rows(const struct report *r, const struct report_row *rows, size_t cnt,
			      FILE *out)
{
	int id_columns = widest_id(rows, cnt);
	const struct columns c = choose_columns(r, 10 + (size_t)id_columns);

	put_titles(r, &c, out);
	fprintf(out, "%-6s  %*s  %sSCOPE\n", "STATE", id_columns, "TASK",
		has_pid(rows, cnt) ? "[PID] " : "");
	for (size_t i = 0; i < cnt; i++)
		put_instance(r, &rows[i], id_columns, &c, out);
}

void report_put_instances(const struct report *r, FILE *out)
{
	const struct report_row *left = &r->outstanding_total;
	char value[UNITS_BUF], count[UNITS_BUF];

	put_instance_rows(r, r->rows.data, r->rows.cnt, out);
	if (!r->rows.data[0].task.is_task)
		fputs("\nNo sample has a task.\n", out);
	if (!r->outstanding.cnt)
		return;
	fprintf(out, "\nOutstanding after exit: %s in %s block%s of %zu task%s\n",
		format_bytes((double)left->value, value, sizeof(value)),
		format_count((double)left->objects, count, sizeof(count)),
		left->objects == 1 ? "" : "s", left->row_cnt, left->row_cnt == 1 ? "" : "s");
	put_instance_rows(r, r->outstanding.data, r->outstanding.cnt, out);
}
