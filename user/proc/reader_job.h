/* SPDX-License-Identifier: MIT */
/* reader_job.h - jobs, for which the reader (reader.h) forks a child, and how many of them there may be. */
#ifndef HT_PROC_READER_JOB_H
#define HT_PROC_READER_JOB_H

#include <stddef.h>
#include <stdint.h>

/*
 * A job, run in the child: fd is its descriptor (-1: none), args are its arguments; it writes its result to
 * out_fd. Its return value is the exit status. The caller defines the kinds.
 */
typedef int (*reader_job_fn)(uint32_t kind, int fd, const void *args, size_t args_bytes,
			     int out_fd);

#define READER_JOBS_CAP 64 /* at once... */
#define READER_JOBS_OF_USER_CAP 8 /* ... and for one user */
#define READER_ARGS_BYTES_CAP 16384

#endif
