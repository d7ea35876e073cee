/* SPDX-License-Identifier: MIT */
/* fd_stream.h - a stdio stream over a descriptor that stays the caller's. */
#ifndef HT_BASE_FD_STREAM_H
#define HT_BASE_FD_STREAM_H

#include <stdio.h>

/* Writing starts at the descriptor's position. */
int fd_stream_open(int fd, FILE **ret);
/* Return err if it is one; else 0, or why not everything could be written. */
int fd_stream_close(FILE *out, int err);

#endif
