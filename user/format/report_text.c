/* SPDX-License-Identifier: MIT */
/*
 * report_text.c - a report for people: a head with the total, the rows, then what the profile
 * says about itself. Fits in opts->columns; what does not fit is shortened, the numbers never.
 *
 * The error bar is "+-1.2 MiB" where it is symmetric, "-0.9 MiB +1.4 MiB" where few samples make
 * it lopsided, "exact" where there is none. Rows with fewer than four samples are marked "?".
 */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "format/report_rows.h"
#include "format/report_text.h"

#define NAME_COLUMNS_MIN 20

/* A comment of the profile that begins with prefix, without it; or NULL. */
static const char *find_comment(const struct profile *p, const char *prefix)
{
	const int64_t *id;

	vec_each(&p->comments, id)
		if (!strncmp(profile_text(p, *id), prefix, strlen(prefix)))
			return profile_text(p, *id) + strlen(prefix);
	return NULL;
}

static void put_when(const struct profile *p, FILE *out)
{
	time_t when = p->time_ns / 1000000000;
	char text[64], elapsed[UNITS_BUF];
	struct tm tm;

	if (p->time_ns > 0 && gmtime_r(&when, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm))
		fprintf(out, " of %s", text);
	if (p->duration_ns > 0)
		fprintf(out, ", over %s",
			format_duration(p->duration_ns, elapsed, sizeof(elapsed)));
}

static void put_rate(const struct profile *p, FILE *out)
{
	const char *type = profile_text(p, p->period_type.type_str);
	const char *unit = profile_text(p, p->period_type.unit_str);
	char rate[UNITS_BUF];

	if (p->period <= 0)
		return;
	if (strcmp(type, "space") != 0 || strcmp(unit, "bytes") != 0)
		fprintf(out, ", period %" PRId64 " %s of %s", p->period, unit, type);
	else if (p->period == 1)
		fputs(", every allocation", out);
	else
		fprintf(out, ", one sample per %s allocated",
			format_bytes(p->period, rate, sizeof(rate)));
}

/* What part of the profile the rest is about. */
static void put_scope(const struct report *r, FILE *out)
{
	char part[UNITS_BUF], whole[UNITS_BUF];

	report_format_value(r, r->total.value, part);
	report_format_value(r, r->whole.value, whole);
	fputs("Scope ", out);
	report_put_tail(out, r->opts->scope, report_columns(r) - 62);
	fprintf(out, " and below: %s of the profile's %s", part, whole);
	if (r->whole.value)
		fprintf(out, " (%.1f%%)", 100.0 * r->total.value / r->whole.value);
	fputc('\n', out);
}

static void put_head(const struct report *r, FILE *out)
{
	const struct report_row *total = &r->total;
	const char *target = find_comment(r->p, "target: ");
	const char *inuse = find_comment(r->p, "in-use: ");
	char value[UNITS_BUF], interval[REPORT_INTERVAL_BUF], count[UNITS_BUF];

	fputs("Heap profile", out);
	put_when(r->p, out);
	put_rate(r->p, out);
	fputc('\n', out);
	if (target) {
		fputs("Target: ", out);
		report_put_name(out, target, report_columns(r) - 8);
		fputc('\n', out);
	}
	report_format_interval(r, total, interval);
	fprintf(out, "Total %s: %s", report_value_title(r),
		report_format_value(r, total->value, value));
	if (interval[0])
		fprintf(out, strcmp(interval, "exact") != 0 ? " %s (95 %%)" : " (%s)", interval);
	if (r->objects_type >= 0)
		fprintf(out, ", %s object%s", format_count(total->objects, count, sizeof(count)),
			total->objects == 1 ? "" : "s");
	if (r->alloc_type >= 0)
		fprintf(out, "; allocated %s", format_bytes(total->alloc, value, sizeof(value)));
	if (r->alloc_objects_type >= 0)
		fprintf(out, " in %s object%s",
			format_count(total->alloc_objects, count, sizeof(count)),
			total->alloc_objects == 1 ? "" : "s");
	fputc('\n', out);
	if (inuse) { /* it is not what one would think */
		fputs("In use: ", out);
		report_put_name(out, inuse, report_columns(r) - 8);
		fputc('\n', out);
	}
	if (r->opts->scope)
		put_scope(r, out);
	fputc('\n', out);
}

/* The width of the columns with numbers is what is left out of them for this profile. */
static void put_table_row(const struct report *r, const struct report_row *row, FILE *out)
{
	char value[UNITS_BUF], interval[REPORT_INTERVAL_BUF], count[UNITS_BUF], share[UNITS_BUF];
	char alloc[UNITS_BUF], title[REPORT_INTERVAL_BUF];
	int used;

	used = fprintf(out, "%10s%c", report_format_value(r, row->value, value),
		       report_is_weak(r, row) ? '?' : ' ');
	if (r->has_interval)
		used += fprintf(out, " %20s", report_format_interval(r, row, interval));
	if (r->objects_type >= 0)
		used += fprintf(out, " %7s", format_count(row->objects, count, sizeof(count)));
	used += fprintf(out, " %6s", report_format_share(r, row->value, share));
	if (r->opts->by == REPORT_BY_FUNCTION)
		used += fprintf(out, " %10s",
				row->row_cnt ? "" : report_format_value(r, row->cumulative, value));
	if (r->alloc_type >= 0)
		used += fprintf(out, " %10s", format_bytes(row->alloc, alloc, sizeof(alloc)));
	fputs("  ", out);
	used += 2;
	report_put_name(out, report_row_title(r, row, title),
			report_columns(r) > used + (size_t)NAME_COLUMNS_MIN ?
				report_columns(r) - used :
				NAME_COLUMNS_MIN);
	fputc('\n', out);
}

static void put_table(const struct report *r, FILE *out)
{
	static const char *const what[] = {
		[REPORT_BY_STACK] = "STACK",   [REPORT_BY_FUNCTION] = "FUNCTION",
		[REPORT_BY_MODULE] = "MODULE", [REPORT_BY_THREAD] = "THREAD",
		[REPORT_BY_LABEL] = "LABEL",
	};
	const char *of = r->opts->by == REPORT_BY_LABEL ? r->opts->label_key : "";
	const struct report_row *row;
	char title[12];
	size_t i;

	snprintf(title, sizeof(title), "%.10s", report_value_title(r));
	for (i = 0; title[i]; i++)
		title[i] = toupper((unsigned char)title[i]);
	fprintf(out, "%10s ", title);
	if (r->has_interval)
		fprintf(out, " %20s", "+- 95 %");
	if (r->objects_type >= 0)
		fprintf(out, " %7s", "OBJECTS");
	fprintf(out, " %6s", "SHARE");
	if (r->opts->by == REPORT_BY_FUNCTION)
		fprintf(out, " %10s", "CUMULATIVE");
	if (r->alloc_type >= 0)
		fprintf(out, " %10s", "ALLOCATED");
	fprintf(out, "  %s%s", what[r->opts->by], of[0] ? " " : "");
	report_put_name(out, of, NAME_COLUMNS_MIN);
	fputc('\n', out);
	vec_each(&r->rows, row)
		put_table_row(r, row, out);
}

/* "file.c:12" or the module. */
static void format_place(const struct report *r, const struct report_frame *f, char *buf,
			 size_t buf_bytes)
{
	const char *file = "", *slash;

	if (f->line)
		file = profile_text(r->p, r->p->functions.data[f->line->function].filename_str);
	slash = strrchr(file, '/');
	if (slash)
		file = slash + 1;
	if (f->line && file[0] && f->line->line > 0)
		snprintf(buf, buf_bytes, "%.60s:%" PRId64, file, f->line->line);
	else
		snprintf(buf, buf_bytes, "%.60s", file[0] ? file : report_frame_module(r->p, f));
}

static void put_frame(const struct report *r, const struct report_frame *f, FILE *out)
{
	char name[REPORT_NAME_BUF], place[96];
	size_t room = report_columns(r) > 60 ? report_columns(r) - 8 : 52, used;
	const char *text = report_frame_name(r->p, f, name, sizeof(name));

	format_place(r, f, place, sizeof(place));
	fputs("        ", out);
	used = report_width(place) + 2;
	report_put_name(out, text, room > used + NAME_COLUMNS_MIN ? room - used : NAME_COLUMNS_MIN);
	if (place[0]) {
		fputs("  ", out);
		report_put_name(out, place, room);
	}
	fputc('\n', out);
}

static size_t count_frames(const struct profile *p, const struct profile_sample *s)
{
	struct report_frame_pos pos = { 0 };
	struct report_frame f;
	size_t n = 0;

	while (report_next_frame(p, s, &pos, &f))
		n++;
	return n;
}

static void put_frames(const struct report *r, const struct profile_sample *s, FILE *out)
{
	size_t cnt = count_frames(r->p, s), cap = r->opts->frame_cap, shown = 0;
	struct report_frame_pos pos = { 0 };
	struct report_frame f;

	if (!cnt)
		fputs("        (no stack)\n", out);
	if (!cap || cnt <= cap + 1) /* "... 1 more" would take as much room as the frame */
		cap = cnt;
	for (; shown < cap && report_next_frame(r->p, s, &pos, &f); shown++)
		put_frame(r, &f, out);
	if (cnt > cap)
		fprintf(out, "        ... %zu more\n", cnt - cap);
}

/* "worker" or "worker and others": the values of a label that a row's samples have. */
static void put_label(const struct report *r, const struct report_row *row, const char *key,
		      const char *before, size_t columns, FILE *out)
{
	const char *first = NULL;
	bool has_others = false;

	for (uint32_t i = 0; i < row->sample_cnt; i++) {
		const struct profile_sample *s =
			&r->p->samples.data[r->order.data[row->sample_first + i]];
		const char *value = profile_sample_label(r->p, s, key);

		if (!first)
			first = value;
		else if (value && strcmp(value, first) != 0)
			has_others = true;
	}
	if (!first)
		return;
	fputs(before, out);
	report_put_name(out, first, columns);
	if (has_others)
		fputs(" and others", out);
}

static void put_stack(const struct report *r, size_t i, FILE *out)
{
	const struct report_row *row = &r->rows.data[i];
	char value[UNITS_BUF], interval[REPORT_INTERVAL_BUF], text[UNITS_BUF];

	if (row->row_cnt)
		fprintf(out, "(other: %zu stack%s)  ", row->row_cnt, row->row_cnt == 1 ? "" : "s");
	else if (!row->sample_cnt)
		fprintf(out, "%s  ", strset_get(r->names, row->name));
	else
		fprintf(out, "#%zu  ", i + 1);
	fputs(report_format_value(r, row->value, value), out);
	report_format_interval(r, row, interval);
	if (interval[0])
		fprintf(out, strcmp(interval, "exact") != 0 ? " %s" : " (%s)", interval);
	if (report_is_weak(r, row))
		fputs(" ?", out);
	fprintf(out, "  %s", report_format_share(r, row->value, text));
	if (r->objects_type >= 0)
		fprintf(out, ", %s object%s", format_count(row->objects, text, sizeof(text)),
			row->objects == 1 ? "" : "s");
	if (r->alloc_type >= 0)
		fprintf(out, ", allocated %s", format_bytes(row->alloc, text, sizeof(text)));
	put_label(r, row, "thread", ", thread ", 16, out);
	put_label(r, row, "scope", "\n        in scope ", report_columns(r) - 30, out);
	fputc('\n', out);
	if (row->sample_cnt)
		put_frames(r, &r->p->samples.data[r->order.data[row->sample_first]], out);
	fputc('\n', out);
}

/* "ledger: name 0 (meaning)": a loss that did not happen. */
static bool is_empty_ledger_line(const char *text)
{
	char name[64];
	unsigned long long value;

	return sscanf(text, "ledger: %63s %llu", name, &value) == 2 && !value;
}

/* At spaces, so that no line is longer than the page; a word that is longer stays whole. */
static void put_wrapped(const char *text, size_t columns, FILE *out)
{
	size_t column = 0;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (column && column + 1 + n + 2 > columns) {
			fputs("\n    ", out);
			column = 2;
		} else {
			fputs(column ? " " : "  ", out);
			column += column ? 1 : 0;
		}
		for (size_t i = 0; i < n; i++)
			fputc(iscntrl((unsigned char)text[i]) ? '?' : text[i], out);
		column += n;
		text += n + strspn(text + n, " ");
	}
	fputc('\n', out);
}

/* What the marks mean that rows have; false: none has one. */
static bool put_legend(const struct report *r, FILE *out)
{
	const char *gap = r->opts->by == REPORT_BY_STACK ? "" : "\n";
	bool has_weak = false, has_minimum = false;
	const struct report_row *row;

	vec_each(&r->rows, row) {
		has_weak |= report_is_weak(r, row);
		has_minimum |= row->peak.is_minimum;
	}
	if (has_weak)
		fprintf(out, "%s? fewer than 4 samples: the order of magnitude at best\n", gap);
	if (has_minimum)
		fprintf(out, "%s> several peaks are one row: together at least that much\n",
			has_weak ? "" : gap);
	return has_weak || has_minimum;
}

static void put_notes(const struct report *r, FILE *out)
{
	const int64_t *id;
	bool has_legend = put_legend(r, out), is_first = true;

	vec_each(&r->p->comments, id) {
		const char *text = profile_text(r->p, *id);

		if (!strncmp(text, "target: ", 8) || is_empty_ledger_line(text))
			continue;
		if (is_first)
			fprintf(out, "%sNotes\n",
				has_legend || r->opts->by != REPORT_BY_STACK ? "\n" : "");
		is_first = false;
		put_wrapped(text, report_columns(r), out);
	}
}

static void put_rows(const struct report *r, FILE *out)
{
	if (!r->rows.cnt) {
		fputs("Nothing was sampled.\n\n", out);
		return;
	}
	switch (r->opts->by) {
	case REPORT_BY_STACK:
		for (size_t i = 0; i < r->rows.cnt; i++)
			put_stack(r, i, out);
		break;
	case REPORT_BY_SCOPE:
		report_put_scopes(r, out);
		break;
	case REPORT_BY_INSTANCE:
		report_put_instances(r, out);
		break;
	default:
		put_table(r, out);
	}
}

int report_write_text(const struct report *r, FILE *out)
{
	put_head(r, out);
	put_rows(r, out);
	put_notes(r, out);
	return 0;
}
