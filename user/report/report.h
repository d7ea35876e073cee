/* SPDX-License-Identifier: MIT */
/*
 * report.h - shows a profile as rows for people (text), programs (JSON) and flame graphs
 * (collapsed).
 *
 * Works for every heap profile, whoever wrote it: shows in-use space, else the profile's default
 * type, else its last type. The rows always add up to the total.
 */
#ifndef HT_REPORT_REPORT_H
#define HT_REPORT_REPORT_H

#include "base/std.h"
#include "report/options.h"

struct err;
struct profile;

/*
 * Check that p has what opts ask for. 0, -ENOMEM, -ENOENT (scope, label_key) or -ENODATA (flame
 * graphs and heap texts of unknown in-use). why gets a sentence that says what there is instead.
 */
int report_check(const struct profile *p, const struct report_options *opts, struct err *why);

/*
 * Move the profile to the moment that opts->at asks for. 0; -ENODATA: it is not known, and why (if not NULL) gets a
 * sentence.
 */
int report_move(struct profile *p, const struct report_options *opts, struct err *why);

/*
 * Write one sentence on what grows: "Grows: Store::put store.cc:12 by 10.2 KiB/s (95 %: 8.1 to
 * 12.3)"; "" if nothing is known to grow. Names only what is far from chance, because many stacks
 * and scopes are looked at. 0 or -ENOMEM.
 */
#define REPORT_GROWS_BUF 1024
int report_grows(const struct profile *p, char buf[REPORT_GROWS_BUF]);

/*
 * Write tables of what grows, as a part of a page: by stack, and by scope if there are scopes;
 * within the last hour and within the whole recording. At most row_cap rows of each. 0 or -ENOMEM.
 */
int report_growth_table(const struct profile *p, size_t row_cap, FILE *out);

/* The files that pages with html_base load from their server. */
extern const struct report_viewer {
	const char *script, *style;
} report_viewer;

/* 0, -ENOMEM, -ENODATA as report_check(), or -EIO if writing to out failed. */
int report_write(const struct profile *p, const struct report_options *opts, FILE *out);

#endif
