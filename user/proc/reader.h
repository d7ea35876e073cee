/* SPDX-License-Identifier: MIT */
/*
 * reader.h - a process that opens and reads for main what belongs to other processes.
 *
 * Another process can delay a reader of its memory, address space or files: by a page or a file of FUSE that is
 * never answered, or by a lock. Not even kill -9 ends such a wait. So main does not wait: a small process reads
 * for it (proc/process.h and the like ask it when there is one). A reader that does not
 * answer in time is killed and replaced, and the process that it read is left alone for a while, each time for
 * longer.
 *
 * The reader is a fork of main, called heaptap-reader, with no descriptor but its socket and no capability but
 * those that reading needs. It ends with main. It can also run jobs: children of its own that read one thing
 * and write the result into a pipe, while main does something else.
 *
 * Who reads is given the reader. Everything is read directly for NULL, and in a forked child of the process that started
 * the reader. Call it from main's first thread.
 */
#ifndef HT_PROC_READER_H
#define HT_PROC_READER_H

#include "base/std.h"

/*
 * A job, run in the child: fd is its descriptor (-1: none), args are its arguments; it writes its result to
 * out_fd. Its return value is the exit status. The caller defines the kinds.
 */
typedef int (*reader_job_fn)(uint32_t kind, int fd, const void *args, size_t args_bytes,
			     int out_fd);

#define READER_JOBS_CAP 64 /* at once... */
#define READER_JOBS_OF_USER_CAP 8 /* ... and for one user */
#define READER_ARGS_BYTES_CAP 16384

/*
 * How long main waits for an answer. A caller that serves others waits for less than the patient time, and gets
 * no files of a file system that another user serves: they could stop it, and the probes of others, whenever
 * they are touched.
 */
#define READER_PATIENT_MS 5000 /* for a caller with nothing else to do */
#define READER_PROMPT_MS 200 /* for a caller that serves others */

struct reader;

/* job: NULL: no jobs are run. Call it before there are threads and much memory. */
int reader_start(uint32_t wait_ms, reader_job_fn job, struct reader **ret);
/* NULL is fine. */
void reader_end(struct reader *r);
/* 0: none runs. */
pid_t reader_pid(const struct reader *r);
/* Number of readers that did not answer, so far. */
uint64_t reader_lost_cnt(const struct reader *r);

/*
 * uid: the user who owns the thing to be read. fd: stays the caller's. *ret_fd: the job writes its result
 * there; end of file is the end of the job, which is killed after wall_s seconds if possible. -EBUSY: too many
 * jobs run.
 */
int reader_run_job(struct reader *reader, uint32_t uid, uint32_t kind, int fd, const void *args,
		   size_t args_bytes, uint32_t wall_s, int *ret_fd);

#endif
