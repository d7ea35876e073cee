/* SPDX-License-Identifier: MIT */
/* report_html_priv.h - internal parts of report_html.c: the time line of a report (report_html_moments.c). */
#ifndef HT_REPORT_REPORT_HTML_PRIV_H
#define HT_REPORT_REPORT_HTML_PRIV_H

#include "base/std.h"
#include "report/report_rows.h"

/* The time line; NULL: what was in use at other moments is unknown. 0 or -ENOMEM. */
struct json;
struct report_time_line;
int report_time_line_new(const struct report *r, struct report_time_line **ret);
void report_time_line_free(struct report_time_line *l);
/* Nothing of NULL. */
void report_time_line_put(const struct report_time_line *l, FILE *out);
void report_time_line_put_json(const struct report_time_line *l, struct json *j);

#endif
