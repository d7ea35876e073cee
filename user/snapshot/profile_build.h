/* SPDX-License-Identifier: MIT */
/*
 * profile_build.h - snapshot + stacks + files + names -> a profile.
 */
#ifndef HT_SNAPSHOT_PROFILE_BUILD_H
#define HT_SNAPSHOT_PROFILE_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbol/symbolizer.h"

struct engine;
struct history;
struct profile;
struct snapshot;
struct track_files;
struct tracker;

struct profile_build_options {
	uint64_t rate_bytes;
	bool keep_allocator_frames; /* malloc & co. stay at the leaf */
	bool label_processes; /* labels pid and comm: several processes in one profile */
	pid_t main_pid; /* whose executable is the first mapping; 0: of the last process known */
	unsigned labels; /* LABEL_* of scope_labels.h */
	/* Of what was in use, for whether it grows; finished. NULL: none. Moments are since begin_ns of the
	 * same clock. */
	const struct history *history;
	bool is_history_partial; /* it is not of all that the snapshot has */
	uint64_t begin_ns;
	bool is_delta; /* of what was allocated since a time: frees are of other blocks, too */
	bool group_threads; /* label thread is the pool: see profile/thread_pool.h */
	struct symbol_options symbols;
	/* called before each file whose symbols are read; may be NULL */
	void (*on_progress)(void *ctx, const char *file, size_t done, size_t total);
	void *ctx;
};

/* Times, comments and the ledger are left to the caller; but for the comment "names: ...", of files
 * that took too long. */
int profile_build(const struct snapshot *s, struct engine *e, const struct track_files *files,
		  const struct tracker *t, const struct profile_build_options *opts,
		  struct profile **ret);

/* Names of locations that are no places: "[truncated: ...]", "[no stack]", "[other stacks]". From 0 on; NULL: no more. */
const char *profile_marker_name(size_t i);

#endif
