/* SPDX-License-Identifier: MIT */
/* check_priv.h - what check.c is made of: the options of `heaptap check`. */
#ifndef HT_CMD_CHECK_PRIV_H
#define HT_CMD_CHECK_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/record_settings.h"
#include "config/option.h"
#include "report/limits.h"

/* check_options.c: the options of `heaptap check`, and which limits they ask for. */

struct check_options {
	struct record_settings with;
	struct limit_options limits;
	/* What becomes a part of it. */
	char *max_growth, *max_inuse, *max_increase, *max_exited, *base;
	double confidence;
	uint64_t top_cnt;
	int format; /* enum limit_format */
	char *output, *profile;
	bool is_quiet, is_verbose;
	/* What is checked, of which one is there: a file, a command, or processes. */
	const char *path;
	char **argv;
	int argc;
	size_t first; /* of argv: the command, or 0 */
};

extern const struct option_table check_table;

/* argv and argc are set, the options applied. 0 or -EINVAL: it was said why. */
int check_options_settle(struct check_options *o, const struct option_args *args);

#endif
