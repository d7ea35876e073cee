/* SPDX-License-Identifier: MIT */
/* check_priv.h - the parts of check.c: the options of `heaptap check`. */
#ifndef HT_CMD_CHECK_PRIV_H
#define HT_CMD_CHECK_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/option.h"
#include "cmd/record_settings.h"
#include "report/limits.h"

/* check_options.c: the options of `heaptap check`, and the limits they ask for. */

struct check_options {
	struct record_settings with;
	struct limit_options limits;
	/* Option values that the members above are made of. */
	char *max_growth, *max_inuse, *max_increase, *max_exited, *max_unexplained, *max_retained,
		*base;
	double confidence;
	uint64_t top_cnt;
	int format; /* enum limit_format */
	char *output, *profile;
	bool is_quiet, is_verbose;
	/* What is checked, one of: a file, a command, or processes. */
	const char *path;
	char **argv;
	int argc;
	size_t first; /* index in argv of the command; or 0 */
};

extern const struct option_table check_table;

/* Call with argv and argc set and the options applied. 0 or -EINVAL: the reason was logged. */
int check_options_settle(struct check_options *o, const struct option_args *args);

#endif
