/* SPDX-License-Identifier: MIT */
/*
 * report_text_scope.c - the tables by scope and by instance.
 *
 * More columns than the other tables have, so they are narrower: the error bar is in per cent of the
 * row, a time of the profile's day is only the time. Scopes are indented by what they lie in; a
 * path that does not fit keeps its end.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "format/report_rows.h"
#include "format/report_text.h"
#include "model/scope_path.h"

#define NAME_COLUMNS_MIN 16
#define INDENT 2

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

static int put_peak(const struct report *r, const struct report_row *row, FILE *out)
{
	const struct report_peak *p = &row->peak;
	char value[UNITS_BUF], when[UNITS_BUF], shown[UNITS_BUF + 1];

	if (!r->has_peaks)
		return 0;
	if (!p->is_known)
		return fprintf(out, " %9s %8s", "", "");
	snprintf(shown, sizeof(shown), "%s%s", p->is_minimum ? ">" : "",
		 format_bytes((double)p->bytes, value, sizeof(value)));
	return fprintf(out, " %9s %8s", shown, format_when(r, p->time_ns, when));
}

/* Returns the columns that the numbers took. */
static int put_numbers(const struct report *r, const struct report_row *row, FILE *out)
{
	char value[UNITS_BUF], interval[REPORT_INTERVAL_BUF];
	int used;

	used = fprintf(out, "%8s%c", report_format_value(r, (double)row->value, value),
		       report_is_weak(r, row) ? '?' : ' ');
	if (r->has_interval)
		used += fprintf(out, " %11s", report_format_short_interval(r, row, interval));
	if (r->opts->by == REPORT_BY_SCOPE)
		used += fprintf(out, " %8s",
				report_format_value(r, (double)row->scope.exclusive.bytes, value));
	if (r->objects_type >= 0)
		used += fprintf(out, " %7s",
				format_count((double)row->objects, value, sizeof(value)));
	used += fprintf(out, " %5s", format_share(r, row->value, value));
	if (r->alloc_type >= 0)
		used += fprintf(out, " %8s",
				row->task.has_no_alloc ?
					"" :
					format_bytes((double)row->alloc, value, sizeof(value)));
	used += put_peak(r, row, out);
	fputs("  ", out);
	return used + 2;
}

static void put_titles(const struct report *r, FILE *out)
{
	char title[9];

	snprintf(title, sizeof(title), "%.8s", report_value_title(r));
	for (size_t i = 0; title[i]; i++)
		title[i] = toupper((unsigned char)title[i]);
	fprintf(out, "%8s ", title);
	if (r->has_interval)
		fprintf(out, " %11s", "+- 95 %");
	if (r->opts->by == REPORT_BY_SCOPE)
		fprintf(out, " %8s", "ITSELF");
	if (r->objects_type >= 0)
		fprintf(out, " %7s", "OBJECTS");
	fprintf(out, " %5s", "SHARE");
	if (r->alloc_type >= 0)
		fprintf(out, " %8s", "ALLOC");
	if (r->has_peaks)
		fprintf(out, " %9s %8s", "PEAK", "AT (UTC)");
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
	const struct report_row *row;

	put_titles(r, out);
	fputs("SCOPE\n", out);
	vec_each(&r->rows, row) {
		int indent = INDENT * (int)row->scope.depth;
		char title[REPORT_INTERVAL_BUF];
		int used = put_numbers(r, row, out);

		used += fprintf(out, "%*s", indent, "");
		report_put_name(out, report_row_title(r, row, title), room_of(r, used));
		fputc('\n', out);
	}
	if (r->rows.cnt == 1 && !r->opts->scope && is_none(r, r->rows.data))
		fputs("\nNo sample has a scope: the program says none (see heaptap/scope.h).\n",
		      out);
}

static void put_instance(const struct report *r, const struct report_row *row, int id_columns,
			 FILE *out)
{
	static const char *const states[] = {
		[REPORT_STATE_UNKNOWN] = "",
		[REPORT_STATE_LIVE] = "live",
		[REPORT_STATE_EXITED] = "exited",
	};
	const char *pid = strset_get(r->names, row->task.pid);
	char title[REPORT_INTERVAL_BUF];
	int used = put_numbers(r, row, out);

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

	put_titles(r, out);
	fprintf(out, "%-6s  %*s  %sSCOPE\n", "STATE", id_columns, "TASK",
		has_pid(rows, cnt) ? "[PID] " : "");
	for (size_t i = 0; i < cnt; i++)
		put_instance(r, &rows[i], id_columns, out);
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
	fprintf(out, "\nOutstanding after exit: %s in %s object%s of %zu task%s\n",
		format_bytes((double)left->value, value, sizeof(value)),
		format_count((double)left->objects, count, sizeof(count)),
		left->objects == 1 ? "" : "s", left->row_cnt, left->row_cnt == 1 ? "" : "s");
	put_instance_rows(r, r->outstanding.data, r->outstanding.cnt, out);
}
