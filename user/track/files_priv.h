/* SPDX-License-Identifier: MIT */
/* files_priv.h - a part of files.c: files that are being read. */
#ifndef HT_TRACK_FILES_PRIV_H
#define HT_TRACK_FILES_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "proc/process.h"

struct alloc_options;
struct file_source;

/*
 * file_readings.c: files that jobs (file_job.h) are reading, while main does something else.
 */

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
