/* SPDX-License-Identifier: MIT */
/*
 * file_content.h - everything that is read from one file that a tracked process maps; nothing of
 * the process or the kernel.
 *
 * The file is untrusted. Reading it and its debug file costs no more than elf_budget.h allows; a
 * costlier file is used as far as it was read.
 */
#ifndef HT_TRACK_FILE_CONTENT_H
#define HT_TRACK_FILE_CONTENT_H

#include "base/std.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "kernel/attach.h"
#include "proc/process.h"
#include "proc/tag_sources.h"
#include "track/file.h"

struct file_sampler;
struct reader;
struct unwind_table;

/*
 * The tags of a file's program, as far as the file tells: where its threads keep them, and the probes of
 * heaptap/scope.h: one hit when the descriptor is ready, one when a task has exited.
 */
struct file_tags {
	struct tag_file where;
	VEC(struct attach_site) readies, task_exits; /* probes of heaptap/scope.h */
	bool is_logged; /* the log already has what is wrong with them */
};

struct file_source {
	const char *path; /* as the target sees it */
	const char *root; /* where to look for its debug file: "/proc/PID/root", or "" */
	bool is_vdso; /* it is not probed */
	bool wants_table; /* an unwind table, for a file that will be probed */
	bool has_session; /* see alloc_site_is_left_alone() */
};

struct file_content {
	char build_id_hex[2 * BUILD_ID_BYTES_CAP + 1];
	VEC(struct track_segment) exec; /* executable segments */
	struct alloc_file *alloc; /* NULL: defines no known allocator */
	struct alloc_unseen unseen;
	bool is_go;
	struct file_tags *tags; /* NULL: the file has no tags */
	struct file_sampler *sampler; /* NULL: the file has no sampler of its own */
	struct track_loader loader;
	struct unwind_table *table; /* NULL: the file has no unwind data, or no table was wanted */
	bool is_partly_read; /* reading all of it was too costly */
	uint64_t steps; /* cost of reading it and its debug file (elf_budget.h) */
};

/*
 * Open the separate debug file, if ef needs one; NULL: not needed, or none found. The names of what
 * was linked into a stripped program are only there.
 */
struct elf_file *file_content_open_debug(struct elf_file *ef, const struct file_source *source);
/* debug may be NULL. The only error is -ENOMEM. The caller releases *ret in any case. */
int file_content_read(struct elf_file *ef, struct elf_file *debug, const struct file_source *source,
		      const struct alloc_options *opts, struct file_content *ret);
/* For a file that is not to be probed. An allocator in it becomes one that is not seen. */
void file_content_drop_probes(struct file_content *c);
void file_content_release(struct file_content *c);
void file_tags_free(struct file_tags *tags);

/*
 * file_job.c: all of this read in a job of the reader (proc/reader.h).
 *
 * The job finds the debug file with the reader's rights, using code that reads only identities and
 * links; it reads the rest behind a seal (base/sandbox.h). In the worst case a hostile file
 * controls the job's answer. So each number in it is checked before use, and it affects that file
 * alone. Main does something else meanwhile.
 */
#define FILE_JOB 0
/* Run a job of this kind; for reader_start(). */
int file_job_run(uint32_t kind, int fd, const void *args, size_t args_bytes, int out_fd);

/* Start a job. Read its answer from *ret_fd, to the end. Errors as reader_run_job(). */
int file_job_start(struct reader *reader, uint32_t uid, int fd, uint64_t file_bytes,
		   const struct file_source *source, const struct alloc_options *opts, int *ret_fd);
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
int file_readings_start(struct file_readings *rs, struct reader *reader,
			const struct file_reading *fresh, const struct file_source *source,
			const struct alloc_options *opts);
/* Take in answers until one reading is over or wait_ms have passed. Return that reading, removed
 * from the list; NULL: none is over. Free it by file_reading_free(). */
struct file_reading *file_readings_next(struct file_readings *rs, int wait_ms);
void file_reading_free(struct file_reading *r);
/* How long the reading of a file of that size may take. */
uint64_t file_reading_limit_ns(uint64_t file_bytes);
void file_readings_release(struct file_readings *rs);

#endif
