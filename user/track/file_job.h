/* SPDX-License-Identifier: MIT */
/*
 * file_job.h - reads the content of a file (file_content.h) in a job of the reader (proc/reader.h).
 *
 * The job finds the debug file with the reader's rights, using code that reads only identities and
 * links; it reads the rest behind a seal (base/sandbox.h). In the worst case a hostile file
 * controls the job's answer. So each number in it is checked before use, and it affects that file
 * alone.
 */
#ifndef HT_TRACK_FILE_JOB_H
#define HT_TRACK_FILE_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "track/file_content.h"

#define FILE_JOB 0
/* Run a job of this kind; for reader_start(). */
int file_job_run(uint32_t kind, int fd, const void *args, size_t args_bytes, int out_fd);

/* Start a job. Read its answer from *ret_fd, to the end. Errors as reader_run_job(). */
int file_job_start(uint32_t uid, int fd, uint64_t file_bytes, const struct file_source *source,
		   const struct alloc_options *opts, int *ret_fd);
/* Parse a job's answer. -EBADMSG: incomplete or wrong; -ENOEXEC: no ELF file; -ENOMEM. The caller
 * releases *ret in any case. */
int file_job_read(const uint8_t *said, size_t bytes, struct file_content *ret);
/* Make the answer of a job from its result; also for tests. */
int file_job_say(int err, const struct file_content *c, uint8_t **ret, size_t *ret_bytes);

#endif
