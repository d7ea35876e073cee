/* SPDX-License-Identifier: MIT */
/*
 * result.h - what a recording leaves: the profile file, the top of it on stdout, the ledger.
 */
#ifndef HT_RECORD_RESULT_H
#define HT_RECORD_RESULT_H

#include <stdbool.h>
#include <stddef.h>

struct profile;
struct recorder;
struct result;
struct targets;

struct result_options {
	const char *output; /* NULL: COMM-PID-TIME.pb.gz in the current directory */
	bool replaces; /* a file that exists */
	int stdout_fd; /* the profile goes there (see out_file_take_stdout()); -1: into a file */
	size_t top_cnt; /* rows to print, 0 = none */
	bool is_quiet; /* none either */
	bool keep_allocator_frames;
	bool no_lines;
	unsigned labels; /* LABEL_* of snapshot/scope_labels.h */
	bool group_threads;
	char *const *program_argv; /* that is started, or NULL */
	char *const *command_argv; /* for the profile's comments */
	int command_argc;
};

/* After recorder_run(), the profile alone; of opts it takes what is of its contents, and of the command line. */
int result_profile(const struct result_options *opts, const struct recorder *r,
		   struct profile **ret);
/* On stderr: what was lost, and why nothing was sampled, of which -ENODATA: nothing could have been. */
int result_explain(const struct result_options *opts, const struct recorder *r);

/* Makes sure that the profile can be written, before anything is attached: see out_file.h. */
int result_open(const struct result_options *opts, const struct targets *targets,
		struct result **ret);
/* -ENODATA: it was written, but there was nothing that could be recorded. What went wrong was said. */
int result_write(struct result *res, const struct recorder *r);
void result_close(struct result *res);

#endif
