/* SPDX-License-Identifier: MIT */
/* profile_source.h - what profiles of `heaptap serve` are made from, and how long their names may take. */
#ifndef HT_SERVE_PROFILE_SOURCE_H
#define HT_SERVE_PROFILE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/attach.h"

struct engine;
struct governor;
struct slow_files;
struct stack_past;
struct symbol_options;
struct track_files;
struct tracker;

/* What profiles are made from, and what their comments say. */
struct profile_source {
	struct engine *engine;
	struct track_files *files;
	struct tracker *tracker;
	struct slow_files *slow; /* of all children that look up names */
	uint64_t names_ns; /* how long those of one profile may take; 0: PROFILE_NAMES_NS */
	bool wants_names; /* -ETIME when they take longer; else what is not known by then has none */
	const struct governor *governor;
	struct stack_past *stacks; /* what they held before; NULL: none is kept */
	uint64_t rate_bytes;
	enum attach_mode mode;
	int64_t begin_epoch_ns;
	char *const *command_argv;
	int command_argc;
};

#define PROFILE_NAMES_NS (60ULL * 1000000000)
/* Of one among several profiles whose names are to be known by end_ns: half of what is left, so that none
 * of them costs the others theirs. */
uint64_t profile_names_share(uint64_t end_ns);
/* How names are looked up for a profile that is begun now. */
struct symbol_options profile_symbol_options(const struct profile_source *src);

#endif
