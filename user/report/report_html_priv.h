/* SPDX-License-Identifier: MIT */
/* report_html_priv.h - internal parts of report_html.c: the time line of a report (report_html_moments.c). */
#ifndef HT_REPORT_REPORT_HTML_PRIV_H
#define HT_REPORT_REPORT_HTML_PRIV_H

#include "base/std.h"
#include "report/report_rows.h"

struct json;

struct report_time_point {
	int64_t ns;
	double bytes, variance;
	size_t moment; /* its number in the page; SIZE_MAX: it is only drawn */
	const char *measure; /* NULL: it is a moment */
};

struct report_time_line {
	const struct report *r;
	size_t first, step; /* moments first, first + step, ... are in the page */
	/* By time; the caller frees them. NULL: what was in use at other moments is unknown, and nothing is put. */
	struct report_time_point *points;
	size_t point_cnt;
	struct report_time_point peak, end; /* peak: no bytes: it is not known */
	int64_t begin_ns, end_ns;
	double top_bytes;
};

/* 0 or -ENOMEM. */
int report_time_line_find(const struct report *r, struct report_time_line *ret);
void report_time_line_put(const struct report_time_line *l, FILE *out);
void report_time_line_put_json(const struct report_time_line *l, struct json *j);

#endif
