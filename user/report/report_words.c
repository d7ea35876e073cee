/* SPDX-License-Identifier: MIT */
/* report_words.c - names, numbers, error bars, and wrapped and painted lines of reports for people. */

#include "base/printable.h"
#include "report/report_rows.h"
#include "report/report_text.h"

#define COLUMNS_DEFAULT 100

size_t report_columns(const struct report *r)
{
	return r->opts->columns ? r->opts->columns : COLUMNS_DEFAULT;
}

/* Width of valid UTF-8, counting each character as one column. */
size_t report_width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* Collapse template arguments and parameters first: "a<...>::f(...)". */
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

/* Length in bytes of the first `columns` characters. */
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

/* Width of the end of a name that must stay: "+0x1a2b", ":17"; 0: no such end. */
static size_t suffix_width(const char *s)
{
	const char *plus = strrchr(s, '+'), *colon = strrchr(s, ':');

	if (plus && !strncmp(plus, "+0x", 3) && !plus[3 + strspn(plus + 3, "0123456789abcdef")])
		return strlen(plus);
	if (colon && isdigit((unsigned char)colon[1]) &&
	    !colon[1 + strspn(colon + 1, "0123456789")])
		return strlen(colon);
	return 0;
}

/* Leave out the middle. */
static void cut_middle(const char *s, size_t columns, char *buf, size_t buf_bytes)
{
	size_t width = report_width(s), suffix = suffix_width(s), head, tail, skip;

	if (columns < 6 || columns < suffix + 3) {
		skip = bytes_of_columns(s, width - columns);
		snprintf(buf, buf_bytes, "%s", s + skip);
		return;
	}
	tail = (columns - 3) / 2;
	if (tail < suffix + 2)
		tail = suffix + 2;
	if (tail > columns - 3)
		tail = columns - 3;
	head = columns - 3 - tail;
	skip = bytes_of_columns(s, width - tail);
	snprintf(buf, buf_bytes, "%.*s...%s", (int)bytes_of_columns(s, head), s, s + skip);
}

char *report_fit_name(const char *name, size_t columns, char buf[REPORT_FIT_BUF])
{
	char once[REPORT_FIT_BUF] = "", twice[REPORT_FIT_BUF] = "";
	const char *text = name;

	if (report_width(name) > columns) {
		collapse(name, '<', '>', once, sizeof(once));
		text = once;
		if (report_width(once) > columns) {
			collapse(once, '(', ')', twice, sizeof(twice));
			text = twice;
		}
	}
	if (report_width(text) > columns)
		cut_middle(text, columns, buf, REPORT_FIT_BUF);
	else
		snprintf(buf, REPORT_FIT_BUF, "%s", text);
	make_printable(buf);
	return buf;
}

size_t report_put_name(FILE *out, const char *name, size_t columns)
{
	char text[REPORT_FIT_BUF];

	fputs(report_fit_name(name, columns, text), out);
	return report_width(text);
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

static const char *exact_words(const struct report *r, const struct report_row *row)
{
	bool is_sum = row == &r->total || row == &r->end || row == &r->at_peak;

	return r->is_lossy || (r->lacks_stacks && !is_sum) ? "" : "exact";
}

static char *format_interval(const struct report *r, const struct report_row *row, double value,
			     double low, double high, char *buf)
{
	char below[UNITS_BUF], above[UNITS_BUF];
	double down = value - low, up = high - value;

	report_format_value(r, down, below);
	report_format_value(r, up, above);
	if (value <= 0) /* what may be held nevertheless is for JSON: it says nothing on this row */
		snprintf(buf, REPORT_INTERVAL_BUF, "%s", "");
	else if (down <= 0 && up <= 0)
		snprintf(buf, REPORT_INTERVAL_BUF, "%s", exact_words(r, row));
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
	if (!report_interval(r, row, &low, &high))
		return buf;
	return format_interval(r, row, row->estimate.bytes, low, high, buf);
}

char *report_format_alloc_interval(const struct report *r, const struct report_row *row, char *buf)
{
	double low, high;

	buf[0] = '\0';
	if (!report_alloc_interval(r, row, &low, &high))
		return buf;
	return format_interval(r, row, row->alloc_estimate.bytes, low, high, buf);
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
	const char *type = profile_text(r->p, r->p->types.data[r->value_type].type_str);

	return r->is_inuse ? "in use" : !strcmp(type, "alloc_space") ? "allocated" : type;
}

bool report_is_weak(const struct report *r, const struct report_row *row)
{
	return r->has_interval && !isnan(row->estimate.bytes_variance) &&
	       estimate_is_weak(&row->estimate);
}

void report_put_tail(FILE *out, const char *name, size_t columns)
{
	size_t width = report_width(name), skip = 0;
	char text[REPORT_FIT_BUF];

	if (width > columns) {
		skip = bytes_of_columns(name, width - (columns > 3 ? columns - 3 : 0));
		fputs("...", out);
	}
	snprintf(text, sizeof(text), "%s", name + skip);
	make_printable(text);
	fputs(text, out);
}

/* Format in a unit that is named elsewhere: "0.71", but "1.26 KiB" in bytes. */
static char *format_in_unit(double n, double unit, char *buf)
{
	n /= unit;
	if (n < 0.0005)
		snprintf(buf, UNITS_BUF, "0");
	else if (unit > 1 && n < 1023.5)
		snprintf(buf, UNITS_BUF, "%.*f",
			 n < 0.0995 ? 3 :
			 n < 9.995  ? 2 :
			 n < 99.95  ? 1 :
				      0,
			 n);
	else if (n < 1023.5)
		snprintf(buf, UNITS_BUF, "%.0f", n);
	else
		format_bytes(n * unit, buf, UNITS_BUF);
	return buf;
}

/* The unit that format_bytes() takes. */
static double unit_of_bytes(double bytes)
{
	double unit = 1;

	while (fabs(bytes) >= 1023.5 && unit < 0x1p50) {
		bytes /= 1024;
		unit *= 1024;
	}
	return unit;
}

char *report_format_unit_interval(const struct report *r, const struct report_row *row, char *buf)
{
	const char *unit_name = profile_text(r->p, r->p->types.data[r->value_type].unit_str);
	char below[UNITS_BUF], above[UNITS_BUF];
	double low, high, bytes = row->estimate.bytes, unit = unit_of_bytes(bytes);

	if (strcmp(unit_name, "bytes") != 0 || bytes <= 0 ||
	    !report_interval(r, row, &low, &high) || low >= high)
		return report_format_interval(r, row, buf);
	format_in_unit(bytes - low, unit, below);
	format_in_unit(high - bytes, unit, above);
	if (!strcmp(below, above) || fabs(high - bytes - (bytes - low)) < 0.02 * (high - bytes))
		snprintf(buf, REPORT_INTERVAL_BUF, "+-%s", above);
	else
		snprintf(buf, REPORT_INTERVAL_BUF, "-%s +%s", below, above);
	return buf;
}

char *report_format_rate(double bytes, char *buf)
{
	double unit = unit_of_bytes(bytes);

	format_bytes(bytes, buf, UNITS_BUF);
	if (fmod(bytes, unit) == 0) { /* "64 KiB" */
		char name[8];

		snprintf(name, sizeof(name), "%s", strchr(buf, ' ') + 1);
		snprintf(buf, UNITS_BUF, "%.0f %s", bytes / unit, name);
	}
	return buf;
}

/* Relative to the shown value: "8%", "12x", at most 5 columns. */
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
	if (bytes <= 0 || !report_interval(r, row, &low, &high))
		return buf;
	down = (bytes - low) / bytes;
	up = (high - bytes) / bytes;
	if (up < 0.002) /* a difference of two rounded numbers means nothing */
		down = up;
	format_ratio(down, below);
	format_ratio(up, above);
	if (low >= high)
		snprintf(buf, REPORT_INTERVAL_BUF, "%s", exact_words(r, row));
	else if (fabs(up - down) < 0.02 * up)
		snprintf(buf, REPORT_INTERVAL_BUF, "+-%s", up < 0.0005 ? "<0.1%" : above);
	else
		snprintf(buf, REPORT_INTERVAL_BUF, "-%s %s%s", below, up < 999.5 ? "+" : "", above);
	return buf;
}

void report_line_add(struct report_line *l, const char *sep, const char *fmt, ...)
{
	size_t begin = l->used, width, columns = l->columns;
	char part[REPORT_FIT_BUF];
	va_list args;

	va_start(args, fmt);
	vsnprintf(part, sizeof(part), fmt, args);
	va_end(args);
	width = report_width(part);
	if (begin && begin + report_width(sep) + width > columns) {
		/* "; " and ", " end the line, as in a sentence */
		fprintf(l->out, "%.*s\n%*s", (int)strcspn(sep, " "), sep, (int)l->indent, "");
		l->used = l->indent;
	} else if (begin) {
		fputs(sep, l->out);
		l->used += report_width(sep);
	}
	fputs(part, l->out);
	l->used += width;
}

void report_line_end(struct report_line *l)
{
	if (l->used)
		fputc('\n', l->out);
	l->used = 0;
}

void report_line_add_words(struct report_line *l, const char *sep, const char *text)
{
	char word[REPORT_FIT_BUF], harmless[REPORT_FIT_BUF];

	while (*text) {
		size_t n = word_with_unit(text);

		snprintf(word, sizeof(word), "%.*s", (int)n, text);
		report_line_add(l, sep, "%s", report_fit_name(word, sizeof(word), harmless));
		text += n + strspn(text + n, " ");
		sep = " ";
	}
}

void report_put_wrapped(const char *text, size_t indent, size_t columns, FILE *out)
{
	struct report_line l = { .out = out, .columns = columns, .indent = indent };

	report_line_add_words(&l, " ", text);
	report_line_end(&l);
}

void report_paint(const struct report *r, enum report_paint paint, FILE *out)
{
	static const char *const codes[] = {
		[REPORT_PLAIN] = "\033[0m",
		[REPORT_BOLD] = "\033[1m",
		[REPORT_DIM] = "\033[2m",
	};

	if (r->opts->has_color)
		fputs(codes[paint], out);
}
