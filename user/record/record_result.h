/* SPDX-License-Identifier: MIT */
/*
 * record_result.h - the result of a recording: the profile file, its largest rows, the ledger.
 *
 * The rows go to stdout, or to stderr where stdout belongs to a started program or to the profile.
 */
#ifndef HT_RECORD_RECORD_RESULT_H
#define HT_RECORD_RECORD_RESULT_H

#include "base/std.h"

struct profile;
struct recorder;
struct result;
struct targets;

struct result_options {
	const char *output; /* NULL: COMM-PID-TIME.pb.gz in the current directory */
	const char *page; /* also write the report as a page for a browser; NULL: none */
	bool opens; /* the page, in the user's browser; it has a default name */
	bool replaces; /* may replace existing files */
	int stdout_fd; /* the profile goes there (see out_file_take_stdout()); -1: into a file */
	size_t top_cnt; /* rows to print, 0 = none */
	bool is_quiet; /* prints no rows either */
	bool keep_allocator_frames;
	bool no_lines;
	unsigned labels; /* LABEL_* of record/scope_labels.h */
	bool group_threads;
	char *const *program_argv; /* of the started program, or NULL */
	char *const *command_argv; /* for the profile's notes */
	int command_argc;
};

/* After recorder_run(): make only the profile. Uses only those opts that are about its contents, and the command
 * line. */
int result_profile(const struct result_options *opts, const struct recorder *r,
		   struct profile **ret);
/* Explain on stderr what was lost, and why there are no samples. -ENODATA: nothing could have been sampled. */
int result_explain(const struct result_options *opts, const struct recorder *r,
		   const struct profile *p);

/* Make sure, before anything is attached, that the profile can be written: see out_file.h. */
int result_open(const struct result_options *opts, const struct targets *targets,
		struct result **ret);
/* -ENODATA: it was written, but nothing could have been recorded. Errors were logged. */
int result_write(struct result *res, const struct recorder *r);
void result_close(struct result *res);

/* Explains a recording without a sample in one sentence: why, and what to do. Pure. */

struct heap_kind;

struct nothing {
	const struct heap_kind *heap;
	size_t site_cnt; /* probed sites */
	size_t failed_cnt; /* sites and files that could not be probed */
	const char *failed_why; /* of the last of them; NULL with failed_cnt 0 */
	uint64_t call_cnt; /* of allocators, seen by probes */
	uint64_t paused_cnt; /* allocations that the program excluded from recording */
	uint64_t rate_bytes, duration_ns;
	bool is_usdt; /* only reports of a sampler in the program were to be read */
	bool is_untapped; /* a process, or program that it executed, was to be tapped, and has ended before that, or the recording has */
	bool is_tapped; /* calls are not counted */
	bool is_partly_tapped; /* not all functions of its allocator are */
	uint64_t late_ns; /* how long it ran before it was tapped */
	const char *unseen; /* "FILE contains jemalloc, whose functions...", or NULL */
	bool probes_went_out; /* taken out to keep the overhead limit */
	char *const *argv; /* of the program that was started, or NULL */
	const char *pids; /* else: "12,13" */
};

#define NOTHING_BYTES 1024
/* name: "PID 12 (server)". -ENODATA: nothing could have been recorded, however long. */
int nothing_explain(const struct nothing *n, const char *name, char buf[static NOTHING_BYTES]);

#endif
