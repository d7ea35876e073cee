/* SPDX-License-Identifier: MIT */
/*
 * record_result.h - the result of a recording: the profile file, its largest rows, the ledger.
 *
 * The rows go to stdout, or to stderr where stdout belongs to a started program or to the profile.
 */
#ifndef HT_RESULT_RECORD_RESULT_H
#define HT_RESULT_RECORD_RESULT_H

#include <stdbool.h>
#include <stddef.h>

struct profile;
struct recorder;
struct result;
struct targets;

struct result_options {
	const char *output; /* NULL: COMM-PID-TIME.pb.gz in the current directory */
	bool replaces; /* may replace an existing file */
	int stdout_fd; /* the profile goes there (see out_file_take_stdout()); -1: into a file */
	size_t top_cnt; /* rows to print, 0 = none */
	bool is_quiet; /* prints no rows either */
	bool keep_allocator_frames;
	bool no_lines;
	unsigned labels; /* LABEL_* of result/scope_labels.h */
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

#endif
