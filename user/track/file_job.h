/* SPDX-License-Identifier: MIT */
/*
 * file_job.h - the content of a file (file_content.h), read by a job of the reader (proc/reader.h).
 *
 * The job finds the debug file with the reader's rights, by code that reads identities and links only; the rest
 * is read behind a seal (base/sandbox.h). What it says is taken over by a hostile file in the worst case, so every
 * number in it is checked before it is used, and it is about that file alone.
 */
#ifndef HT_TRACK_FILE_JOB_H
#define HT_TRACK_FILE_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "track/file_content.h"

#define FILE_JOB 0
/* For reader_start(): runs a job of this kind. */
int file_job_run(uint32_t kind, int fd, const void *args, size_t args_bytes, int out_fd);

/* *ret_fd: what it says, to its end. Errors of reader_run_job(). */
int file_job_start(uint32_t uid, int fd, uint64_t file_bytes, const struct file_source *source,
		   const struct alloc_options *opts, int *ret_fd);
/* What it said. -EBADMSG: it did not come to an end, or it is wrong; -ENOEXEC: no ELF file; -ENOMEM. *ret is
 * released by the caller in any case. */
int file_job_read(const uint8_t *said, size_t bytes, struct file_content *ret);
/* What such a job has to say at the end; for tests as well. */
int file_job_say(int err, const struct file_content *c, uint8_t **ret, size_t *ret_bytes);

#endif
