/* SPDX-License-Identifier: MIT */
/* top.h - `heaptap top`: records one process, as heaptap record does, until it ends or the user quits. */
#ifndef HT_RECORD_TOP_H
#define HT_RECORD_TOP_H

#include <stdint.h>
#include <sys/types.h>

#include "profile/recording.h"
#include "record/top_view.h"
#include "track/policy.h"

struct top_record_options {
	pid_t pid;
	enum top_what what; /* the first view */
	enum top_sort sort;
	uint64_t interval_ns, rate_bytes;
	bool rate_is_fixed; /* as in struct recorder_options */
	enum tap_wish tap;
	struct recording_limit max_overhead;
	char *const *command_argv; /* for the profile's notes */
	int command_argc;
};

/* Errors were logged. */
int top_record(const struct top_record_options *opts);

#endif
