/* SPDX-License-Identifier: MIT */
/*
 * regular_file.h - opens other people's files, for reading.
 *
 * To open a file can have an effect (a device), or wait: for a writer (a FIFO), or until a process gives up a lease on
 * its own file, which may take 45 seconds (F_SETLEASE). So only regular files are opened, without waiting, and not while
 * a write lease is held: its holder would get SIGIO, and die of it by default.
 */
#ifndef HT_BASE_REGULAR_FILE_H
#define HT_BASE_REGULAR_FILE_H

/* -ENOEXEC: not a regular file; -EAGAIN: somebody has a lease on it: try later. O_CLOEXEC. */
int regular_file_open(const char *path);
/* Open the file of an O_PATH descriptor, which stays the caller's. */
int regular_file_reopen(int path_fd);

#endif
