/* SPDX-License-Identifier: MIT */
/* report_text.h - shared by the parts of the text report. Internal to the report_*.c files. */
#ifndef HT_REPORT_TEXT_H
#define HT_REPORT_TEXT_H

#include "base/std.h"
#include "base/units.h"

struct profile;
struct resident_class;
struct report;
struct report_row;

/* Buffer size for a title or an interval; all others need UNITS_BUF. All of them return buf. */
#define REPORT_INTERVAL_BUF (2 * UNITS_BUF + 8)

/* Width in columns of the page, and of a text. */
size_t report_columns(const struct report *r);
size_t report_width(const char *s);
size_t report_count_lines(const char *text);
/*
 * Shorten a name to `columns`, without control characters. Drops template arguments first, then
 * parameters, then the middle, because the end tells names apart ("+0x1a2b", ":17").
 * report_put_tail() drops the beginning.
 */
#define REPORT_FIT_BUF 2048
char *report_fit_name(const char *name, size_t columns, char buf[REPORT_FIT_BUF]);
size_t report_put_name(FILE *out, const char *name, size_t columns);
void report_put_tail(FILE *out, const char *name, size_t columns);
char *report_format_value(const struct report *r, double value, char *buf);
/* "+-1.2 MiB"; short: "+-8%" of at most 11 columns. "" when there is none. */
char *report_format_interval(const struct report *r, const struct report_row *row, char *buf);
/* The same for what was allocated. */
char *report_format_alloc_interval(const struct report *r, const struct report_row *row, char *buf);
char *report_format_short_interval(const struct report *r, const struct report_row *row, char *buf);
/* In the unit of the value before it: "+-0.71", "-0.39 +1.42", "exact". */
char *report_format_unit_interval(const struct report *r, const struct report_row *row, char *buf);
/* For a round number: "64 KiB". */
char *report_format_rate(double bytes, char *buf);
char *report_format_share(const struct report *r, int64_t value, char *buf);
const char *report_value_title(const struct report *r);
bool report_is_weak(const struct report *r, const struct report_row *row);

/* A text that is wrapped only between its parts. `used` must be 0 at the beginning. */
struct report_line {
	FILE *out;
	size_t columns, indent; /* indent: of all lines except the first */
	size_t used;
};
/* Add a part. sep precedes it unless it is the first of its line. */
void report_line_add(struct report_line *l, const char *sep, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Add the words of a text as parts; sep precedes the first. */
void report_line_add_words(struct report_line *l, const char *sep, const char *text);
void report_line_end(struct report_line *l);
/* Write text wrapped at spaces to the page's width; a longer word stays whole, and a number with its unit. */
void report_put_wrapped(const char *text, size_t indent, size_t columns, FILE *out);

enum report_paint { REPORT_PLAIN, REPORT_BOLD, REPORT_DIM };
void report_paint(const struct report *r, enum report_paint paint, FILE *out);

/* Write what precedes the rows. */
void report_put_head(const struct report *r, FILE *out);

/* Memory that a profile cannot have, and whether that matters. */

#define REPORT_SEEN_SHARE 0.5 /* of growth: with less, what is not seen matters */
/* The next sentence about memory that is not seen; *at: 0 at first. NULL: none. */
const char *report_next_unseen(const struct profile *p, size_t *at);
/* Is the total of what is in use certainly not all? So it is when the profile names memory that is not seen, and either
 * was that lost, or the process, which ran before, grew by twice of what was ever seen in use. */
bool report_is_least(const struct report *r);

/* report_before.c: blocks that were allocated before the recording and live at its end, as malloc counts their bytes. */
struct report_before {
	double objects, objects_low, objects_high;
	double bytes, bytes_low, bytes_high;
};
/* false: it is not known. */
bool report_find_before(const struct report *r, struct report_before *ret);
/* What of it is of a C++ class or, without a name, of a size. */
struct report_before_class {
	const char *name;
	uint64_t from_bytes, to_bytes;
	double objects, objects_low, objects_high, bytes;
};
/* false: of this class of the profile it is not sure that there are any. */
bool report_find_before_class(const struct report *r, const struct resident_class *c,
			      struct report_before_class *ret);

/* Growth of value per minute, NAN: not known. */
double report_per_minute(const struct report *r, int64_t value);
/* Marks that shown rows have. */
struct report_marks {
	bool has_weak, has_minimum;
};
/* Write the rows in at most line_cap lines, 0 = any number; adds to marks. 0 or -ENOMEM. */
int report_put_screen_rows(const struct report *r, size_t line_cap, struct report_marks *marks,
			   FILE *out);

/* By scope and by instance: all rows, one line each, and what belongs to them. */
void report_put_tree(const struct report *r, struct report_marks *marks, FILE *out);

/* Write "12.0k allocated blocks: 99.8% lived under 1 ms, most have 64 to 127 B", or nothing if not known. */
void report_put_blocks(const struct report *r, const struct report_row *row, FILE *out);

/* All columns of numbers, in their order. */
enum report_cell {
	REPORT_CELL_TEMPORARY,
	REPORT_CELL_OF_ALL,
	REPORT_CELL_OF_ALL_INTERVAL,
	REPORT_CELL_MOST,
	REPORT_CELL_PINNED,
	REPORT_CELL_PINNED_INTERVAL,
	REPORT_CELL_GROWTH,
	REPORT_CELL_GROWTH_INTERVAL,
	REPORT_CELL_VALUE,
	REPORT_CELL_MARK,
	REPORT_CELL_INTERVAL,
	REPORT_CELL_RATE,
	REPORT_CELL_PEAK,
	REPORT_CELL_WHEN,
	REPORT_CELL_ITSELF,
	REPORT_CELL_BLOCKS,
	REPORT_CELL_OF_BLOCKS,
	REPORT_CELL_SHARE,
	REPORT_CELL_CUMULATIVE,
	REPORT_CELL_ALLOC,
	REPORT_CELL_VERDICT,
	REPORT_CELL_STATE,
	REPORT_CELL_TASK,
	REPORT_CELL_CNT
};

/* Set r and wants; widen it by all rows before the first is put. The name follows the numbers. */
struct report_table {
	const struct report *r;
	bool wants[REPORT_CELL_CNT];
	size_t width[REPORT_CELL_CNT];
};
void report_table_widen(struct report_table *t, const struct report_row *row);
/* Drop columns that can be done without, so that the page has room for names. */
void report_table_fit(struct report_table *t);
/* Return the columns of the page in front of the name. */
size_t report_table_columns(const struct report_table *t);
void report_table_put_titles(const struct report_table *t, FILE *out);
void report_table_put_row(const struct report_table *t, const struct report_row *row, FILE *out);

#endif
