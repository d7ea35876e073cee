/* SPDX-License-Identifier: MIT */
/*
 * report_diff.h - the changes from one profile to another, row by row, and whether each is more
 * than chance.
 *
 * Rows are compared by name, so the profiles may be of different starts, builds and rates. By
 * stack, stacks charged to the same function with the same own callers are one row. A difference
 * has a 95 % interval, made from the intervals of both profiles; if it contains 0, both profiles
 * may show the same truth.
 */
#ifndef HT_REPORT_DIFF_H
#define HT_REPORT_DIFF_H

#include "base/std.h"
#include "report/report.h"

struct err;
struct profile;

/*
 * Used of opts: by, value, scope, match, own, row_cap, columns, has_color; format is REPORT_TEXT,
 * REPORT_JSON or REPORT_HTML. The names are the two files' names, for people. 0, -ENOMEM, -EIO; or
 * -EINVAL with a sentence in why: the profiles have different kinds of values, or in-use is unknown
 * in one.
 */
int report_diff(const struct profile *before, const char *before_name, const struct profile *after,
		const char *after_name, const struct report_options *opts, FILE *out,
		struct err *why);

/* The same, as a profile whose values are changes; negative: less than before. */
int report_diff_profile(const struct profile *before, const char *before_name,
			const struct profile *after, const char *after_name,
			const struct report_options *opts, struct profile **ret, struct err *why);

#endif
