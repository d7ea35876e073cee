/* SPDX-License-Identifier: MIT */
/* sources.h - the data of `heaptap top`: a process that it records, or the processes that a daemon follows. */
#ifndef HT_TOP_SOURCES_H
#define HT_TOP_SOURCES_H

#include <stdint.h>
#include <sys/types.h>

#include "profile/recording.h"
#include "top/ui.h"

/* record_source.c: heaptap top -p: records one process, as heaptap record does, until it ends or the user quits. */

struct top_record_options {
	struct top_ui_options ui; /* pid: whom */
	uint64_t interval_ns, rate_bytes;
	bool rate_is_fixed; /* as in struct recorder_options */
	struct recording_limit max_overhead;
	char *const *command_argv; /* for the profile's notes */
	int command_argc;
};

/* Errors were logged. */
int top_record(const struct top_record_options *opts);

/* serve_source.c: heaptap top --connect: shows what a running heaptap serve follows. */

struct top_serve_options {
	struct top_ui_options ui;
	const char *url, *token_file; /* token_file NULL: no token is needed */
	uint64_t interval_ns;
};

/* Errors were logged. */
int top_serve(const struct top_serve_options *opts);

#endif
