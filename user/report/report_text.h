/* SPDX-License-Identifier: MIT */
/* report_text.h - what the parts of the text report share. Internal to the report_*.c files. */
#ifndef HT_REPORT_TEXT_H
#define HT_REPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/units.h"

struct report;
struct report_frame;
struct report_row;

/* Room for a title or an interval; for all others UNITS_BUF. All of them return buf. */
#define REPORT_INTERVAL_BUF (2 * UNITS_BUF + 8)

/* Columns of the page, and of a text. */
size_t report_columns(const struct report *r);
size_t report_width(const char *s);
size_t report_count_lines(const char *text);
/*
 * At most `columns` of name, without control characters. Template arguments give way first, then
 * parameters, then the middle: what tells names apart is at the end ("+0x1a2b", ":17"). Of a tail
 * the begin gives way.
 */
#define REPORT_FIT_BUF 2048
char *report_fit_name(const char *name, size_t columns, char buf[REPORT_FIT_BUF]);
size_t report_put_name(FILE *out, const char *name, size_t columns);
void report_put_tail(FILE *out, const char *name, size_t columns);
char *report_format_value(const struct report *r, double value, char *buf);
/* "+-1.2 MiB"; short: "+-8%" of at most 11 columns. "" when there is none. */
char *report_format_interval(const struct report *r, const struct report_row *row, char *buf);
/* The same of what was allocated. */
char *report_format_alloc_interval(const struct report *r, const struct report_row *row, char *buf);
char *report_format_short_interval(const struct report *r, const struct report_row *row, char *buf);
/* In the unit of the value that it stands behind: "+-0.71", "-0.39 +1.42", "exact". */
char *report_format_unit_interval(const struct report *r, const struct report_row *row, char *buf);
/* Of a round number: "64 KiB". */
char *report_format_rate(double bytes, char *buf);
char *report_format_share(const struct report *r, int64_t value, char *buf);
const char *report_value_title(const struct report *r);
bool report_is_weak(const struct report *r, const struct report_row *row);
const char *report_row_title(const struct report *r, const struct report_row *row, char *buf);

/* Text that is wrapped between its parts, which stay whole. Zero columns used at the begin. */
struct report_line {
	FILE *out;
	size_t columns, indent; /* indent: of all lines but the first */
	size_t used;
};
/* sep stands before the part when it is not the first of its line. */
void report_line_add(struct report_line *l, const char *sep, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void report_line_end(struct report_line *l);
/* At spaces, so that no line is longer than the page; a word that is longer stays whole. */
void report_put_wrapped(const char *text, size_t indent, size_t columns, FILE *out);

enum report_paint { REPORT_PLAIN, REPORT_BOLD, REPORT_DIM };
void report_paint(const struct report *r, enum report_paint paint, FILE *out);

/* What stands above the rows, and below them. */
void report_put_head(const struct report *r, FILE *out);
void report_put_end(const struct report *r, FILE *out);
/* What value grows by in a minute, NAN: not known. */
double report_per_minute(const struct report *r, int64_t value);
/* What the profile says about itself: its comments. */
void report_put_notes(const struct report *r, FILE *out);
/* What rows that are shown are marked with. */
struct report_marks {
	bool has_weak, has_minimum;
};
void report_put_legend(const struct report *r, const struct report_marks *marks, FILE *out);
/* The rows in at most line_cap lines, 0 = any number; adds to marks. 0 or -ENOMEM. */
int report_put_screen_rows(const struct report *r, size_t line_cap, struct report_marks *marks,
			   FILE *out);

/* "12.0k allocated blocks: 99.8% lived under 1 ms, most have 64 to 127 B", or nothing where that is not known. */
void report_put_blocks(const struct report *r, const struct report_row *row, FILE *out);

/* The tables by scope and by instance. */
void report_put_scopes(const struct report *r, FILE *out);
/* One line for each of the program's own labels: "tenant: a 12.0 MiB, b 3.40 MiB, 17 more". */
void report_put_tenants(const struct report *r, FILE *out);
void report_put_instances(const struct report *r, FILE *out);

#endif
