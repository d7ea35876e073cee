/* SPDX-License-Identifier: MIT */
/*
 * debug_job.h - reduces a file of a followed process to names and lines (elf/debug_only.h), in a job of the reader
 * (proc/reader.h): main never opens or parses such a file.
 *
 * The job has the mapped file, and finds its separate debug file with the reader's rights, by code that reads only
 * identities. All else happens behind a seal (base/sandbox.h). It writes the reduced file into a pipe, as fast as it is
 * read. In the worst case a hostile file controls what is sent in its own name.
 */
#ifndef HT_SERVE_DEBUG_JOB_H
#define HT_SERVE_DEBUG_JOB_H

#include <stddef.h>

struct debuginfo_file;
struct track_file;

#define DEBUG_JOB 2
/* Run a job of this kind; for reader_start(). */
int debug_job_run(int fd, const void *args, size_t args_bytes, int out_fd);

/*
 * In main: start a job, and wait a moment for what it says of the file: of the mapped file if it has DWARF, else of its
 * separate debug file (by build id, below the target's root, then on the host), else of the mapped file with the symbols it
 * has. -ENODATA: no names anywhere; -EAGAIN: the job has not answered, or there is no room for it now; -errno.
 */
int debug_job_start(const struct track_file *file, struct debuginfo_file *ret);

#endif
