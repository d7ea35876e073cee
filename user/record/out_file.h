/* SPDX-License-Identifier: MIT */
/*
 * out_file.h - a file that is there complete or not at all, made in a folder that others may write to.
 *
 * Data goes to a temporary file beside it, readable by its owner only, which is renamed at the end. An existing
 * file is left alone unless `replaces`, and root writes to a stranger's folder (folder.h) only with it. A link at
 * that place is never followed to a file. Devices and pipes are written to directly; a link to one is followed
 * where nobody else can create or change it: it and its folder are root's or the user's own.
 */
#ifndef HT_RECORD_OUT_FILE_H
#define HT_RECORD_OUT_FILE_H

#include "base/std.h"

struct err;
struct out_file;

/* -EEXIST: it exists, and may not be replaced. Others: it cannot be written. why: a sentence for the user, with
 * what to do; how: how to give another file, " with -o FILE" or "". */
int out_file_open(const char *path, bool replaces, const char *how, struct out_file **ret,
		  struct err *why);
/* Open the standard output that out_file_take_stdout() took; owns fd from here on. */
int out_file_open_stdout(int fd, struct out_file **ret);
int out_file_fd(const struct out_file *of);
/*
 * Give the file its name. If another one has been made there meanwhile, it is left alone and a free name is taken,
 * PATH-1 and so on (before ".pb.gz"): out_file_path() says which.
 */
int out_file_commit(struct out_file *of);
const char *out_file_path(const struct out_file *of);
/* Give a file that is to be browsed to the user who called sudo; before the commit. */
void out_file_give(struct out_file *of);
/* Open a committed file in the browser of the user who called sudo, else of this user; never as root. It goes on while
 * the browser runs. A clause in why. */
int out_file_browse(const struct out_file *of, struct err *why);
/* Without a commit nothing is left of the file. */
void out_file_free(struct out_file *of);

/* Does path mean standard output: "-", or its names in /dev and /proc? */
bool out_file_is_stdout(const char *path);
/*
 * Send to standard error all that anybody, started programs included, writes to standard output from here on: only
 * the profile may be in it. *ret_fd: the former standard output. -ENOTTY: it is a terminal.
 */
int out_file_take_stdout(int *ret_fd);

/* "server-14662-20261124-032524.pb.gz": UTC; bytes of comm that are not [A-Za-z0-9._-] become '_'. */
#define OUT_FILE_NAME_BYTES 96
void out_file_default_name(const char *comm, pid_t pid, int64_t epoch_s,
			   char buf[static OUT_FILE_NAME_BYTES]);

#endif
