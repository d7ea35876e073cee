/* SPDX-License-Identifier: MIT */
/* report_words.c - names, numbers and error bars as they stand in a report for people. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format/report_rows.h"
#include "format/report_text.h"

#define COLUMNS_DEFAULT 100

size_t report_columns(const struct report *r)
{
	return r->opts->columns ? r->opts->columns : COLUMNS_DEFAULT;
}

/* Characters of valid UTF-8, taken as one column each. */
size_t report_width(const char *s)
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
size_t report_put_name(FILE *out, const char *name, size_t columns)
{
	char once[2048] = "", twice[2048] = "";
	const char *text = name;
	size_t width = report_width(name), n;

	if (width > columns) {
		collapse(name, '<', '>', once, sizeof(once));
		text = once;
		if (report_width(once) > columns) {
			collapse(once, '(', ')', twice, sizeof(twice));
			text = twice;
		}
	}
	width = report_width(text);
	n = width > columns ? bytes_of_columns(text, columns > 3 ? columns - 3 : 0) : strlen(text);
	for (size_t i = 0; i < n; i++)
		fputc(iscntrl((unsigned char)text[i]) ? '?' : text[i], out);
	if (width <= columns)
		return width;
	fputs("...", out);
	return columns;
}

char *report_format_value(const struct report *r, double value, char *buf)
{
	const char *unit = profile_text(r->p, r->p->types.data[r->value_type].unit_str);

	if (!strcmp(unit, "bytes"))
		return format_bytes(value, buf, UNITS_BUF);
	if (!strcmp(unit, "nanoseconds") && value >= 0)
		return format_duration(value, buf, UNITS_BUF);
	return format_count(value, buf, UNITS_BUF);
}

static char *format_interval(const struct report *r, double value, double low, double high,
			     char *buf)
{
	char below[UNITS_BUF], above[UNITS_BUF];
	double down = value - low, up = high - value;

	report_format_value(r, down, below);
	report_format_value(r, up, above);
	if (down <= 0 && up <= 0)
		snprintf(buf, REPORT_INTERVAL_BUF, "%s", value > 0 ? "exact" : "");
	else if (fabs(up - down) < 0.02 * up)
		snprintf(buf, REPORT_INTERVAL_BUF, "+-%s", above);
	else
		snprintf(buf, REPORT_INTERVAL_BUF, "-%s +%s", below, above);
	return buf;
}

char *report_format_interval(const struct report *r, const struct report_row *row, char *buf)
{
	double low, high;

	buf[0] = '\0';
	if (!r->has_interval)
		return buf;
	estimate_interval(&row->estimate, &low, &high);
	return format_interval(r, row->estimate.bytes, low, high, buf);
}

char *report_format_alloc_interval(const struct report *r, const struct report_row *row, char *buf)
{
	double low, high;

	buf[0] = '\0';
	if (!report_alloc_interval(r, row, &low, &high))
		return buf;
	return format_interval(r, row->alloc_estimate.bytes, low, high, buf);
}

char *report_format_share(const struct report *r, int64_t value, char *buf)
{
	if (r->total.value)
		snprintf(buf, UNITS_BUF, "%.1f%%", 100.0 * value / r->total.value);
	else
		snprintf(buf, UNITS_BUF, "-");
	return buf;
}

const char *report_value_title(const struct report *r)
{
	return r->is_inuse ? "in use" :
			     profile_text(r->p, r->p->types.data[r->value_type].type_str);
}

bool report_is_weak(const struct report *r, const struct report_row *row)
{
	return r->has_interval && estimate_is_weak(&row->estimate);
}

const char *report_row_title(const struct report *r, const struct report_row *row, char *buf)
{
	const char *what = r->opts->by == REPORT_BY_SCOPE    ? "scope" :
			   r->opts->by == REPORT_BY_INSTANCE ? "task" :
							       "row";

	if (!row->row_cnt)
		return strset_get(r->names, row->name);
	snprintf(buf, REPORT_INTERVAL_BUF, "(other: %zu %s%s)", row->row_cnt, what,
		 row->row_cnt == 1 ? "" : "s");
	return buf;
}

void report_put_tail(FILE *out, const char *name, size_t columns)
{
	size_t width = report_width(name), skip = 0;

	if (width > columns) {
		skip = bytes_of_columns(name, width - (columns > 3 ? columns - 3 : 0));
		fputs("...", out);
	}
	for (const char *s = name + skip; *s; s++)
		fputc(iscntrl((unsigned char)*s) ? '?' : *s, out);
}

/* Of what is shown: "8%", "12x", at most 5 columns. */
static char *format_ratio(double ratio, char *buf)
{
	if (ratio < 0.0995)
		snprintf(buf, UNITS_BUF, "%.1f%%", 100 * ratio);
	else if (ratio < 9.995)
		snprintf(buf, UNITS_BUF, "%.0f%%", 100 * ratio);
	else if (ratio < 999.5)
		snprintf(buf, UNITS_BUF, "%.0fx", ratio);
	else
		snprintf(buf, UNITS_BUF, ">999x");
	return buf;
}

char *report_format_short_interval(const struct report *r, const struct report_row *row, char *buf)
{
	char below[UNITS_BUF], above[UNITS_BUF];
	double low, high, bytes = row->estimate.bytes, down, up;

	buf[0] = '\0';
	if (!r->has_interval || bytes <= 0)
		return buf;
	estimate_interval(&row->estimate, &low, &high);
	down = (bytes - low) / bytes;
	up = (high - bytes) / bytes;
	if (up < 0.002) /* what is left of a difference when both are rounded says nothing */
		down = up;
	format_ratio(down, below);
	format_ratio(up, above);
	if (low >= high)
		snprintf(buf, REPORT_INTERVAL_BUF, "exact");
	else if (fabs(up - down) < 0.02 * up)
		snprintf(buf, REPORT_INTERVAL_BUF, "+-%s", up < 0.0005 ? "<0.1%" : above);
	else
		snprintf(buf, REPORT_INTERVAL_BUF, "-%s %s%s", below, up < 999.5 ? "+" : "", above);
	return buf;
}
