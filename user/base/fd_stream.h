/* SPDX-License-Identifier: MIT */
/* fd_stream.h - a stdio stream onto a descriptor that stays the caller's. */
#ifndef HT_BASE_FD_STREAM_H
#define HT_BASE_FD_STREAM_H

#include <stdio.h>

/* Writes from the descriptor's position on. */
int fd_stream_open(int fd, FILE **ret);
/* err when it is one; else 0, or why not everything could be written. */
int fd_stream_close(FILE *out, int err);

#endif
