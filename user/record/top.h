/* SPDX-License-Identifier: MIT */
/* top.h - `heaptap top`: records one process, as heaptap record does, until it ends or the user quits. */
#ifndef HT_RECORD_TOP_H
#define HT_RECORD_TOP_H

#include "base/std.h"
#include "profile/recording.h"
#include "track/policy.h"

enum top_what { TOP_PROCESSES, TOP_STACKS, TOP_FUNCTIONS, TOP_SCOPES, TOP_THREADS };
extern const char *const top_what_names[]; /* "process", "stack", as in --by of a report */
enum top_sort { TOP_BY_HELD, TOP_BY_GROWTH, TOP_BY_ALLOC };
extern const char *const top_sort_names[];

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
