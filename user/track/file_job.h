/* SPDX-License-Identifier: MIT */
/*
 * file_job.h - reads the content of a file (file_content.h) in a job of the reader (proc/reader.h).
 *
 * The job finds the debug file with the reader's rights, using code that reads only identities and
 * links; it reads the rest behind a seal (base/sandbox.h). In the worst case a hostile file
 * controls the job's answer. So each number in it is checked before use, and it affects that file
 * alone. Main does something else meanwhile.
 */
#ifndef HT_TRACK_FILE_JOB_H
#define HT_TRACK_FILE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "proc/process.h"
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

/* A file that a job is reading. */
struct file_reading {
	uint64_t ino;
	uint32_t dev, uid;
	int fd; /* the file, open */
	struct file_facts facts;
	char *path, *root; /* see struct track_file */
	/* the job's answer so far */
	int said_fd;
	VEC(uint8_t) said;
	uint64_t due_ns; /* deadline: a job that has not finished by then never will */
	bool is_over;
};

/* Zeros: no readings. */
struct file_readings {
	VEC(struct file_reading *) list;
};

#define FILE_READINGS_CAP 8 /* in all... */
#define FILE_READINGS_OF_USER_CAP 4 /* ... and for one user */

bool file_readings_have_room(const struct file_readings *rs, uint32_t uid);
/* Start a reading. On success it owns the fd, path and root of fresh. -EBUSY: later; -ENOMEM or another -errno. */
int file_readings_start(struct file_readings *rs, const struct file_reading *fresh,
			const struct file_source *source, const struct alloc_options *opts);
/* Take in answers until one reading is over or wait_ms have passed. Return that reading, removed
 * from the list; NULL: none is over. Free it by file_reading_free(). */
struct file_reading *file_readings_next(struct file_readings *rs, int wait_ms);
void file_reading_free(struct file_reading *r);
/* How long the reading of a file of that size may take. */
uint64_t file_reading_limit_ns(uint64_t file_bytes);
void file_readings_release(struct file_readings *rs);

#endif
