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

#define COLUMNS_DEFAULT 100
#define NAME_COLUMNS_MIN 20
#define INTERVAL_BUF (2 * UNITS_BUF + 8)

static size_t columns_of(const struct report *r)
{
	return r->opts->columns ? r->opts->columns : COLUMNS_DEFAULT;
}

/* Characters of valid UTF-8, taken as one column each. */
static size_t width_of(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* Template arguments and parameters give way first: "a<...>::f(...)". */
static void collapse(const char *name, char open, char close, char *out, size_t out_bytes)
{
	size_t used = 0;
	int depth = 0;

	for (const char *s = name; *s && used + 4 < out_bytes; s++) {
		bool is_arrow = close == '>' && *s == '>' && s > name && s[-1] == '-';
		bool is_operator = s - name >= 8 && strstr(name, "operator") &&
				   (!strncmp(s - 8, "operator", 8) || s[-1] == open);

		if (*s == open && !is_operator && s > name && depth++ == 0) {
			out[used++] = open;
			memcpy(out + used, "...", 3);
			used += 3;
		} else if (*s == close && !is_arrow && depth > 0) {
			depth--;
		}
		if (!depth && used + 1 < out_bytes)
			out[used++] = *s;
	}
	out[used] = '\0';
}

/* Length in bytes of the first columns characters. */
static size_t bytes_of_columns(const char *s, size_t columns)
{
	size_t i = 0;

	for (size_t n = 0; s[i]; i++) {
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
		if (n > columns)
			break;
	}
	return i;
}

/* Prints name in at most columns; control characters as '?': a name must not drive a terminal. */
static size_t put_name(FILE *out, const char *name, size_t columns)
{
	char once[2048], twice[2048];
	const char *text = name;
	size_t width = width_of(name), n;

	if (width > columns) {
		collapse(name, '<', '>', once, sizeof(once));
		text = once;
		if (width_of(once) > columns) {
			collapse(once, '(', ')', twice, sizeof(twice));
			text = twice;
		}
	}
	width = width_of(text);
	n = width > columns ? bytes_of_columns(text, columns > 3 ? columns - 3 : 0) : strlen(text);
	for (size_t i = 0; i < n; i++)
		fputc(iscntrl((unsigned char)text[i]) ? '?' : text[i], out);
	if (width <= columns)
		return width;
	fputs("...", out);
	return columns;
}

static char *format_value(const struct report *r, double value, char *buf)
{
	const char *unit = profile_text(r->p, r->p->types.data[r->value_type].unit_str);

	if (!strcmp(unit, "bytes"))
		return format_bytes(value, buf, UNITS_BUF);
	if (!strcmp(unit, "nanoseconds") && value >= 0)
		return format_duration(value, buf, UNITS_BUF);
	return format_count(value, buf, UNITS_BUF);
}

static char *format_interval(const struct report *r, const struct report_row *row, char *buf)
{
	char below[UNITS_BUF], above[UNITS_BUF];
	double low, high, down, up;

	if (!r->has_interval) {
		buf[0] = '\0';
		return buf;
	}
	estimate_interval(&row->estimate, &low, &high);
	down = row->estimate.bytes - low;
	up = high - row->estimate.bytes;
	format_value(r, down, below);
	format_value(r, up, above);
	if (down <= 0 && up <= 0)
		snprintf(buf, INTERVAL_BUF, "%s", row->value ? "exact" : "");
	else if (fabs(up - down) < 0.02 * up)
		snprintf(buf, INTERVAL_BUF, "+-%s", above);
	else
		snprintf(buf, INTERVAL_BUF, "-%s +%s", below, above);
	return buf;
}

static char *format_share(const struct report *r, int64_t value, char *buf)
{
	if (r->total.value)
		snprintf(buf, UNITS_BUF, "%.1f%%", 100.0 * value / r->total.value);
	else
		snprintf(buf, UNITS_BUF, "-");
	return buf;
}

static const char *value_title(const struct report *r)
{
	return r->is_inuse ? "in use" :
			     profile_text(r->p, r->p->types.data[r->value_type].type_str);
}

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

static void put_head(const struct report *r, FILE *out)
{
	const struct report_row *total = &r->total;
	const char *target = find_comment(r->p, "target: ");
	char value[UNITS_BUF], interval[INTERVAL_BUF], count[UNITS_BUF];

	fputs("Heap profile", out);
	put_when(r->p, out);
	put_rate(r->p, out);
	fputc('\n', out);
	if (target) {
		fputs("Target: ", out);
		put_name(out, target, columns_of(r) - 8);
		fputc('\n', out);
	}
	format_interval(r, total, interval);
	fprintf(out, "Total %s: %s", value_title(r), format_value(r, total->value, value));
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
	fputs("\n\n", out);
}

static bool is_weak(const struct report *r, const struct report_row *row)
{
	return r->has_interval && estimate_is_weak(&row->estimate);
}

static const char *row_title(const struct report *r, const struct report_row *row, char *buf)
{
	if (!row->row_cnt)
		return strset_get(r->names, row->name);
	snprintf(buf, INTERVAL_BUF, "(other: %zu rows)", row->row_cnt);
	return buf;
}

/* The width of the columns with numbers is what is left out of them for this profile. */
static void put_table_row(const struct report *r, const struct report_row *row, FILE *out)
{
	char value[UNITS_BUF], interval[INTERVAL_BUF], count[UNITS_BUF], share[UNITS_BUF];
	char alloc[UNITS_BUF], title[INTERVAL_BUF];
	int used;

	used = fprintf(out, "%10s%c", format_value(r, row->value, value),
		       is_weak(r, row) ? '?' : ' ');
	if (r->has_interval)
		used += fprintf(out, " %20s", format_interval(r, row, interval));
	if (r->objects_type >= 0)
		used += fprintf(out, " %7s", format_count(row->objects, count, sizeof(count)));
	used += fprintf(out, " %6s", format_share(r, row->value, share));
	if (r->opts->by == REPORT_BY_FUNCTION)
		used += fprintf(out, " %10s",
				row->row_cnt ? "" : format_value(r, row->cumulative, value));
	if (r->alloc_type >= 0)
		used += fprintf(out, " %10s", format_bytes(row->alloc, alloc, sizeof(alloc)));
	fputs("  ", out);
	used += 2;
	put_name(out, row_title(r, row, title),
		 columns_of(r) > used + (size_t)NAME_COLUMNS_MIN ? columns_of(r) - used :
								   NAME_COLUMNS_MIN);
	fputc('\n', out);
}

static void put_table(const struct report *r, FILE *out)
{
	static const char *const what[] = {
		[REPORT_BY_STACK] = "STACK",
		[REPORT_BY_FUNCTION] = "FUNCTION",
		[REPORT_BY_MODULE] = "MODULE",
		[REPORT_BY_THREAD] = "THREAD",
	};
	const struct report_row *row;
	char title[12];
	size_t i;

	snprintf(title, sizeof(title), "%.10s", value_title(r));
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
	fprintf(out, "  %s\n", what[r->opts->by]);
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
	size_t room = columns_of(r) > 60 ? columns_of(r) - 8 : 52, used;
	const char *text = report_frame_name(r->p, f, name, sizeof(name));

	format_place(r, f, place, sizeof(place));
	fputs("        ", out);
	used = width_of(place) + 2;
	put_name(out, text, room > used + NAME_COLUMNS_MIN ? room - used : NAME_COLUMNS_MIN);
	if (place[0]) {
		fputs("  ", out);
		put_name(out, place, room);
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

/* ", thread worker" or ", 3 threads" */
static void put_threads(const struct report *r, const struct report_row *row, FILE *out)
{
	const char *first = NULL;
	size_t others = 0;

	for (uint32_t i = 0; i < row->sample_cnt; i++) {
		const struct profile_sample *s =
			&r->p->samples.data[r->order.data[row->sample_first + i]];
		const char *thread = profile_sample_label(r->p, s, "thread");

		if (!first)
			first = thread;
		else if (thread && strcmp(thread, first) != 0)
			others++;
	}
	if (!first)
		return;
	fputs(", thread ", out);
	put_name(out, first, 16);
	if (others)
		fputs(" and others", out);
}

static void put_stack(const struct report *r, size_t i, FILE *out)
{
	const struct report_row *row = &r->rows.data[i];
	char value[UNITS_BUF], interval[INTERVAL_BUF], text[UNITS_BUF];

	if (row->row_cnt)
		fprintf(out, "(other: %zu stacks)  ", row->row_cnt);
	else
		fprintf(out, "#%zu  ", i + 1);
	fputs(format_value(r, row->value, value), out);
	format_interval(r, row, interval);
	if (interval[0])
		fprintf(out, strcmp(interval, "exact") != 0 ? " %s" : " (%s)", interval);
	if (is_weak(r, row))
		fputs(" ?", out);
	fprintf(out, "  %s", format_share(r, row->value, text));
	if (r->objects_type >= 0)
		fprintf(out, ", %s object%s", format_count(row->objects, text, sizeof(text)),
			row->objects == 1 ? "" : "s");
	if (r->alloc_type >= 0)
		fprintf(out, ", allocated %s", format_bytes(row->alloc, text, sizeof(text)));
	put_threads(r, row, out);
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

static void put_notes(const struct report *r, FILE *out)
{
	const int64_t *id;
	bool has_weak = false, is_first = true;
	const struct report_row *row;

	vec_each(&r->rows, row)
		has_weak |= is_weak(r, row);
	if (has_weak)
		fprintf(out, "%s? fewer than 4 samples: the order of magnitude at best\n",
			r->opts->by == REPORT_BY_STACK ? "" : "\n");
	vec_each(&r->p->comments, id) {
		const char *text = profile_text(r->p, *id);

		if (!strncmp(text, "target: ", 8) || is_empty_ledger_line(text))
			continue;
		if (is_first)
			fprintf(out, "%sNotes\n",
				has_weak || r->opts->by != REPORT_BY_STACK ? "\n" : "");
		is_first = false;
		put_wrapped(text, columns_of(r), out);
	}
}

int report_write_text(const struct report *r, FILE *out)
{
	put_head(r, out);
	if (!r->rows.cnt)
		fputs("Nothing was sampled.\n\n", out);
	else if (r->opts->by != REPORT_BY_STACK)
		put_table(r, out);
	else
		for (size_t i = 0; i < r->rows.cnt; i++)
			put_stack(r, i, out);
	put_notes(r, out);
	return 0;
}
