/* SPDX-License-Identifier: MIT */
/* record_source.h - `heaptap top`: records one process, as heaptap record does, until it ends or the user quits. */
#ifndef HT_TOP_RECORD_SOURCE_H
#define HT_TOP_RECORD_SOURCE_H

#include <stdint.h>
#include <sys/types.h>

#include "profile/recording.h"
#include "top/ui.h"
#include "track/policy.h"

struct top_record_options {
	struct top_ui_options ui; /* pid: whom */
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
