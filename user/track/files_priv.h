/* SPDX-License-Identifier: MIT */
/* files_priv.h - what files.c is made of: files that are being read. */
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
 * file_readings.c: files that are being read by jobs (file_job.h), while something else is done.
 */

struct file_reading {
	uint64_t ino;
	uint32_t dev, uid;
	int fd; /* the file, open */
	struct file_facts facts;
	char *path, *root; /* see struct track_file */
	/* what it has said so far */
	int said_fd;
	VEC(uint8_t) said;
	uint64_t due_ns; /* who has not come to an end by then never will */
	bool is_over;
};

/* All zero: none. */
struct file_readings {
	VEC(struct file_reading *) list;
};

#define FILE_READINGS_CAP 8 /* at once... */
#define FILE_READINGS_OF_USER_CAP 4 /* ... and for one user */

/* Is one of this file under way? */
bool file_readings_have(const struct file_readings *rs, uint32_t dev, uint64_t ino);
bool file_readings_have_room(const struct file_readings *rs, uint32_t uid);
/* fresh: its fd, path and root are taken over when this succeeds. -EBUSY: later; -ENOMEM, or why not. */
int file_readings_start(struct file_readings *rs, const struct file_reading *fresh,
			const struct file_source *source, const struct alloc_options *opts);
/* Takes what they say, until one is over or wait_ms have passed: that one, no longer in the list; NULL: none.
 * To be freed by file_reading_free(). */
struct file_reading *file_readings_next(struct file_readings *rs, int wait_ms);
void file_reading_free(struct file_reading *r);
void file_readings_release(struct file_readings *rs);

#endif
