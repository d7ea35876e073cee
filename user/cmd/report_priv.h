/* SPDX-License-Identifier: MIT */
/* report_priv.h - the parts of report.c: the options of `heaptap report` and `heaptap diff`. */
#ifndef HT_CMD_REPORT_PRIV_H
#define HT_CMD_REPORT_PRIV_H

#include "base/std.h"
#include "base/terminal.h"
#include "base/vec.h"
#include "cmd/option.h"
#include "profile/bins.h"
#include "report/report.h"

/* report_options.c: the options of `heaptap report` and `heaptap diff`, and which go together. */

struct report_cli {
	struct report_options report;
	/* Option values that it is made of. */
	char *by, *at, *scope, *match, *thread_globs, *output, *base, *token_file;
	struct texts modules, own;
	int value, diff_format; /* index of the choice */
	bool is_pprof; /* diff: write a profile of the changes */
	uint64_t older_than_ns; /* 0: all */
	char older_than[AGE_NAME_BUF];
	const char *path;
	const char *base_path; /* diff: the earlier profile; NULL: a report */
	enum terminal_color color;
	bool has_by, has_top, has_frames, is_verbose, has_no_pager;
};

extern const struct option_table report_table, diff_table;

/* Call with the options applied; keeps pointers into argv. 0, -EINVAL: the reason was logged; -ENOMEM. */
int report_options_settle(struct report_cli *c, char **argv, const struct option_args *args,
			  bool is_diff);

#endif
