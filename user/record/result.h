/* SPDX-License-Identifier: MIT */
/*
 * result.h - what a recording leaves: the profile file, the top of it on stdout, the ledger.
 */
#ifndef HT_RECORD_RESULT_H
#define HT_RECORD_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct recorder;
struct result;

struct result_options {
	const char *output; /* NULL: heaptap-PID.pb.gz in the current directory */
	size_t top_cnt; /* rows to print, 0 = none */
	bool keep_allocator_frames;
	bool no_lines;
	unsigned labels; /* LABEL_* of snapshot/scope_labels.h */
	bool group_threads;
	char *const *command_argv; /* for the profile's comments */
	int command_argc;
};

/*
 * Makes sure that the file can be written, before anything is attached: the profile is written to
 * a temporary file beside it, which replaces it only when it is complete.
 */
int result_open(const struct result_options *opts, pid_t pid, struct result **ret);
int result_write(struct result *res, const struct recorder *r);
void result_close(struct result *res);

#endif
