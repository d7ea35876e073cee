/* SPDX-License-Identifier: MIT */
/*
 * regular_file.h - opening files that somebody else made, for reading.
 *
 * Opening can do things (a device), or wait: for a writer (a FIFO), or until the lease of a process on its
 * own file is broken, which it may let take 45 seconds (F_SETLEASE). So what is not a regular file is not
 * opened, and nothing is waited for.
 */
#ifndef HT_BASE_REGULAR_FILE_H
#define HT_BASE_REGULAR_FILE_H

/* -ENOEXEC: not a regular file; -EAGAIN: somebody has it for himself: later perhaps. O_CLOEXEC. */
int regular_file_open(const char *path);
/* The file of an O_PATH descriptor, which stays the caller's. */
int regular_file_reopen(int path_fd);

#endif
