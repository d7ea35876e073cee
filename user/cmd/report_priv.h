/* SPDX-License-Identifier: MIT */
/* report_priv.h - what report.c is made of: the options of `heaptap report` and `heaptap diff`. */
#ifndef HT_CMD_REPORT_PRIV_H
#define HT_CMD_REPORT_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/terminal.h"
#include "base/texts.h"
#include "config/option.h"
#include "profile/age.h"
#include "report/report.h"

/* report_options.c: the options of `heaptap report` and `heaptap diff`, and which go with which. */

struct report_cli {
	struct report_options report;
	/* What becomes a part of it. */
	char *by, *scope, *match, *thread_globs, *output, *base, *token_file;
	struct texts modules, own;
	int value, diff_format; /* which of the choices */
	bool is_pprof; /* of a difference: a profile of the changes */
	uint64_t older_than_ns; /* 0: all */
	char older_than[AGE_NAME_BUF];
	const char *path;
	const char *base_path; /* of a difference: what was before; NULL: it is none */
	enum terminal_color color;
	bool has_by, has_top, has_frames, is_verbose, has_no_pager;
};

extern const struct option_table report_table, diff_table;

/* The options are applied; argv is referred to. 0, -EINVAL: it was said why; -ENOMEM. */
int report_options_settle(struct report_cli *c, char **argv, const struct option_args *args,
			  bool is_diff);

#endif
