/* SPDX-License-Identifier: MIT */
/* profile_source.h - what profiles of `heaptap serve` are made from, and how long looking up names may take. */
#ifndef HT_RESULT_PROFILE_SOURCE_H
#define HT_RESULT_PROFILE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/attach.h"

struct engine;
struct governor;
struct name_cache;
struct slow_files;
struct stack_past;
struct symbol_options;
struct track_files;
struct tracker;

/* What profiles are made from, and what their notes say. */
struct profile_source {
	struct engine *engine;
	struct track_files *files;
	struct tracker *tracker;
	struct slow_files *slow; /* shared by all children that look up names */
	struct name_cache *names; /* likewise */
	uint64_t names_ns; /* limit for the names of one profile; 0: PROFILE_NAMES_NS */
	bool is_page; /* somebody looks at it: names without lines are better than none */
	bool wants_names; /* -ETIME when names take longer; else late ones are left out */
	const struct governor *governor;
	struct stack_past *stacks; /* what processes held before; NULL: not kept */
	uint64_t rate_bytes;
	enum attach_mode mode;
	int64_t begin_epoch_ns;
	char *const *command_argv;
	int command_argc;
};

#define PROFILE_NAMES_NS (60ULL * 1000000000)
/* Time for the names of one of several profiles, all due by end_ns: half of what is left, so that no profile takes
 * all the time of the others. */
uint64_t profile_names_share(uint64_t end_ns);
/* The image of a followed process, in the form that the past uses (metrics/stack_past.h). */
uint64_t result_image(const struct profile_source *src, pid_t pid);
/* How names are looked up for a profile that begins now. */
struct symbol_options profile_symbol_options(const struct profile_source *src);

#endif
