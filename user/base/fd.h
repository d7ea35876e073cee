/* SPDX-License-Identifier: MIT */
/* fd.h - descriptors: other people's files opened, all bytes read or written, a stdio stream over one, one in place of none. */
#ifndef HT_BASE_FD_H
#define HT_BASE_FD_H

#include "base/std.h"

/* Write with as many calls as necessary. After an error (-errno) a part of the bytes may have been written. */
int write_all(int fd, const void *data, size_t bytes);
/* Read until so many bytes are there, or the file ends. Return how many there are, or -errno. */
ssize_t read_full(int fd, void *buf, size_t bytes);

/* A stdio stream over a descriptor that stays the caller's. Writing starts at the descriptor's position. */
int fd_stream_open(int fd, FILE **ret);
/* Return err if it is one; else 0, or why not everything could be written. */
int fd_stream_close(FILE *out, int err);

/* A replacement for descriptors 0 to 2 when nothing is to be read or written there. Return an fd (O_CLOEXEC) that is
 * always at its end; what is written to it is lost. Or a negative errno. */
int null_fd_open(void);

/*
 * Other people's files, for reading.
 *
 * To open a file can have an effect (a device), or wait: for a writer (a FIFO), or until a process gives up a lease on
 * its own file, which may take 45 seconds (F_SETLEASE). So only regular files are opened, without waiting, and not
 * while a write lease is held: its holder would get SIGIO, and die of it by default.
 *
 * -ENOEXEC: not a regular file; -EAGAIN: somebody has a lease on it: try later. O_CLOEXEC.
 */
int regular_file_open(const char *path);
/* Open the file of an O_PATH descriptor, which stays the caller's. */
int regular_file_reopen(int path_fd);

#endif
