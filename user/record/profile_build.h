/* SPDX-License-Identifier: MIT */
/*
 * profile_build.h - snapshot + stacks + files + names -> a profile.
 */
#ifndef HT_RECORD_PROFILE_BUILD_H
#define HT_RECORD_PROFILE_BUILD_H

#include "base/std.h"
#include "symbol/symbol.h"

struct engine;
struct history;
struct profile;
struct snapshot;
struct track_files;
struct tracker;

struct profile_build_options {
	uint64_t rate_bytes;
	bool keep_allocator_frames; /* leave malloc & co. at the leaf */
	bool label_processes; /* add labels pid and comm: the profile has several processes */
	pid_t main_pid; /* its executable is the first mapping; 0: that of the last known process */
	unsigned labels; /* LABEL_* of scope_labels.h */
	/* History of what was in use, finished, to tell whether it grows. NULL: none. Its moments
	 * are counted from begin_ns of the same clock. */
	const struct history *history;
	bool is_history_partial; /* it does not cover all of the snapshot */
	uint64_t begin_ns;
	bool is_delta; /* allocations since a time only: some frees are of other blocks */
	bool group_threads; /* label thread has the pool: see profile/thread_pool.h */
	struct symbol_options symbols;
	/* called before the symbols of a file are read; may be NULL */
	void (*on_progress)(void *ctx, const char *file, size_t done, size_t total);
	void *ctx;
};

/* Build a profile. The caller sets times, comments and the ledger, except the comment "names: ..."
 * on files that took too long. */
int profile_build(const struct snapshot *s, struct engine *e, const struct track_files *files,
		  const struct tracker *t, const struct profile_build_options *opts,
		  struct profile **ret);

/* Names of locations without an address: "[truncated: ...]", "[no stack]", "[other stacks]". i from
 * 0 on; NULL: no more. */
const char *profile_marker_name(size_t i);

#endif
