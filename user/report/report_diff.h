/* SPDX-License-Identifier: MIT */
/*
 * report_diff.h - what changed from one profile to another, row by row, and whether that is more than chance.
 *
 * Rows are compared by name, so that the profiles may be of different starts, builds and rates: by stack, the
 * stacks that are charged to the same function with the same own callers are one row. A difference has an interval of
 * 95 % made from the intervals of both; where 0 is inside, the two profiles may be of the same truth.
 */
#ifndef HT_REPORT_DIFF_H
#define HT_REPORT_DIFF_H

#include <stdio.h>

#include "report/report.h"

struct err;
struct profile;

/*
 * opts: by, value, scope, match, own, row_cap, columns, has_color; format is REPORT_TEXT, REPORT_JSON or REPORT_HTML. The names are
 * those of the two files, for people. 0, -ENOMEM, -EIO; or -EINVAL with a sentence in why: the two do not
 * have the same kind of values, or one's in-use is not known.
 */
int report_diff(const struct profile *before, const char *before_name, const struct profile *after,
		const char *after_name, const struct report_options *opts, FILE *out,
		struct err *why);

/* The same as a profile whose values are changes, negative ones where there is less. */
int report_diff_profile(const struct profile *before, const char *before_name,
			const struct profile *after, const char *after_name,
			const struct report_options *opts, struct profile **ret, struct err *why);

#endif
