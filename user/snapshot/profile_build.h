/* SPDX-License-Identifier: MIT */
/*
 * profile_build.h - snapshot + stacks + files + names -> a profile.
 */
#ifndef HT_SNAPSHOT_PROFILE_BUILD_H
#define HT_SNAPSHOT_PROFILE_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "symbol/symbolizer.h"

struct engine;
struct profile;
struct snapshot;
struct track_files;
struct tracker;

struct profile_build_options {
	uint64_t rate_bytes;
	bool keep_allocator_frames; /* malloc & co. stay at the leaf */
	bool label_processes; /* labels pid and comm: several processes in one profile */
	struct symbol_options symbols;
	/* called before each file whose symbols are read; may be NULL */
	void (*on_progress)(void *ctx, const char *file, size_t done, size_t total);
	void *ctx;
};

/* Times, comments and the ledger are left to the caller. */
int profile_build(const struct snapshot *s, struct engine *e, const struct track_files *files,
		  const struct tracker *t, const struct profile_build_options *opts,
		  struct profile **ret);

#endif
