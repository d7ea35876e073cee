/* SPDX-License-Identifier: MIT */
/* report_text.h - what the parts of the text report share. Internal to the report_*.c files. */
#ifndef HT_FORMAT_REPORT_TEXT_H
#define HT_FORMAT_REPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/units.h"

struct report;
struct report_row;

/* Room for a title or an interval; for all others UNITS_BUF. All of them return buf. */
#define REPORT_INTERVAL_BUF (2 * UNITS_BUF + 8)

/* Columns of the page, and of a text. */
size_t report_columns(const struct report *r);
size_t report_width(const char *s);
/* At most `columns` of name, without control characters; what does not fit is left out at the end,
 * of a tail at its begin. */
size_t report_put_name(FILE *out, const char *name, size_t columns);
void report_put_tail(FILE *out, const char *name, size_t columns);
char *report_format_value(const struct report *r, double value, char *buf);
/* "+-1.2 MiB"; short: "+-8%" of at most 11 columns. "" when there is none. */
char *report_format_interval(const struct report *r, const struct report_row *row, char *buf);
/* The same of what was allocated. */
char *report_format_alloc_interval(const struct report *r, const struct report_row *row, char *buf);
char *report_format_short_interval(const struct report *r, const struct report_row *row, char *buf);
char *report_format_share(const struct report *r, int64_t value, char *buf);
const char *report_value_title(const struct report *r);
bool report_is_weak(const struct report *r, const struct report_row *row);
const char *report_row_title(const struct report *r, const struct report_row *row, char *buf);

/* The tables by scope and by instance. */
void report_put_scopes(const struct report *r, FILE *out);
void report_put_instances(const struct report *r, FILE *out);

#endif
