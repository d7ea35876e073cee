/* SPDX-License-Identifier: MIT */
/* reader_job.h - what the reader (reader.h) forks a child for, and how many of them there may be. */
#ifndef HT_PROC_READER_JOB_H
#define HT_PROC_READER_JOB_H

#include <stddef.h>
#include <stdint.h>

/*
 * A job, in the child: descriptor fd (-1: none), its arguments; what it has to say goes to out_fd. What it returns
 * is its exit status. Kinds are the caller's.
 */
typedef int (*reader_job_fn)(uint32_t kind, int fd, const void *args, size_t args_bytes,
			     int out_fd);

#define READER_JOBS_CAP 64 /* that run at once... */
#define READER_JOBS_OF_USER_CAP 8 /* ... and for one user */
#define READER_ARGS_BYTES_CAP 16384

#endif
