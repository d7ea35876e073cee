/* SPDX-License-Identifier: MIT */
/*
 * make.h - makes a result: a request goes in (struct result_request in http/endpoints.h), a file comes out.
 *
 * It is made of a snapshot of the samples, or of the past that is kept of the stacks. Slow, because names are looked
 * up: run it in a child (worker.h).
 */
#ifndef HT_RECORD_MAKE_H
#define HT_RECORD_MAKE_H

#include "base/std.h"
#include "kernel/attach.h"

struct engine;
struct governor;
struct name_cache;
struct profile;
struct result_request;
struct rows_past;
struct slow_files;
struct snapshot;
struct stack_past;
struct track_files;
struct tracker;

/* What results are made from, and what their notes say. */
struct reader;

struct result_source {
	struct reader *reader; /* see proc/reader.h */
	struct engine *engine;
	struct track_files *files;
	struct tracker *tracker;
	struct slow_files *slow; /* shared by all children that look up names */
	struct name_cache *names; /* likewise */
	const struct governor *governor;
	struct stack_past *stacks; /* what processes held before; NULL: not kept */
	struct rows_past *rows; /* what was resident of them by row; NULL: not read */
	uint64_t rate_bytes;
	enum attach_mode mode;
	int64_t begin_epoch_ns;
	char *const *command_argv;
	int command_argc;
};

/* When the results of one child are of. */
struct result_moment {
	const struct snapshot *snapshot; /* NULL: none of them needs one */
	int64_t epoch_ns;
	uint64_t monotonic_ns; /* the same moment on CLOCK_MONOTONIC */
};

/*
 * Write what is asked for. -ESRCH: the one process that is asked for has ended, and the form needs its addresses.
 * -ENODATA: the form has no notes and shows what is in use, which is unknown. -EDOM: the two profiles of a difference
 * cannot be compared. -ENOENT: the past that is asked for is not kept. -ETIME: with wants_all_names, names take longer
 * than names_ns. -EAGAIN: a page is whole, but there was no time for some names.
 */
int result_make(const struct result_source *src, const struct result_moment *m,
		const struct result_request *r, int fd);
/* The same as a profile in memory, of now; free it with profile_free(). */
int result_build(const struct result_source *src, const struct result_moment *m,
		 const struct result_request *r, struct profile **ret);
bool result_needs_snapshot(const struct result_request *r);

/* Call in a child that makes results: memory that children share shall not be in its own children. */
void result_begin_child(const struct result_source *src);
/* Time for the names of one of several results, all due by end_ns: half of what is left, so that no result takes all
 * the time of the others. */
uint64_t result_names_share(uint64_t end_ns);
/* The image of a followed process, in the form that the past uses (http/past.h). */
uint64_t result_image(const struct result_source *src, pid_t pid);

#endif
