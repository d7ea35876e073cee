/* SPDX-License-Identifier: MIT */
/*
 * report.h - a profile as rows for people (text), programs (JSON) and flame graphs (collapsed).
 *
 * Works for every heap profile, whoever wrote it: in-use space is shown, else the profile's
 * default type, else its last. The rows always add up to the total.
 */
#ifndef HT_REPORT_REPORT_H
#define HT_REPORT_REPORT_H

#include <stddef.h>
#include <stdio.h>

#include "report/options.h"

struct err;
struct profile;

/*
 * Is in p what opts ask for? 0, -ENOMEM, -ENOENT (scope, label_key) or -ENODATA (flame graphs and
 * heap texts of in-use that is not known), with a sentence in why that says what there is instead.
 */
int report_check(const struct profile *p, const struct report_options *opts, struct err *why);

/*
 * One sentence of what grows, "" when nothing is known to: "Grows: Store::put store.cc:12 by 10.2 KiB/s (95 %: 8.1 to
 * 12.3)". Many stacks and scopes are looked at: nothing is named that is not far from chance. 0 or -ENOMEM.
 */
#define REPORT_GROWS_BUF 1024
int report_grows(const struct profile *p, char buf[REPORT_GROWS_BUF]);

/*
 * What grows, as a part of a page: by stack, and by scope where there are scopes; within the last hour and within all of
 * the recording. At most row_cap rows of each. 0 or -ENOMEM.
 */
int report_growth_table(const struct profile *p, size_t row_cap, FILE *out);

/* What pages with html_base want from their server. */
const char *report_viewer_script(void);
const char *report_viewer_style(void);

/* 0, -ENOMEM, -ENODATA as report_check(), or -EIO when out could not be written. */
int report_write(const struct profile *p, const struct report_options *opts, FILE *out);

#endif
