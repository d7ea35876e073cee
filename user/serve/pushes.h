/* SPDX-License-Identifier: MIT */
/*
 * pushes.h - pushes a profile of each followed process to each destination, once in an interval.
 *
 * The child process that makes profiles (profiles.c) makes the requests and leaves them in a file. The event loop
 * only gives them to the destinations' senders (push_queue.h) and never waits for a network.
 */
#ifndef HT_SERVE_PUSHES_H
#define HT_SERVE_PUSHES_H

#include "base/std.h"
#include "serve/debuginfo_upload.h"

struct loop;
struct pushes;
struct reader;
struct result_moment;
struct result_source;
struct serve_push;
struct track_file;
struct track_files;

/* Everything pointed to must stay valid. */
struct pushes_options {
	const struct push_target *targets;
	size_t target_cnt;
	const struct push_label *labels;
	size_t label_cnt;
	uint64_t interval_ns;
	struct push_identity identity; /* for all destinations */
	char *spool_dir; /* NULL: waiting requests are in memory only */
	/* Parca destinations get the debug information of followed processes' files, and name the frames of files
	 * that they have. */
	bool sends_debuginfo;
	uint64_t debuginfo_bytes_max; /* size limit of one file */
};

/* Log on stderr why it fails. With no targets nothing is ever due. What debug information waits for is watched in the
 * loop. */
int pushes_open(const struct pushes_options *opts, struct reader *reader, struct loop *loop,
		struct pushes **ret);
/*
 * Apply other options. Requests that wait for remaining destinations are kept; the queues of removed ones are
 * closed. The spool's folder cannot change. On failure, which
 * is logged, nothing has changed.
 */
int pushes_change(struct pushes *p, const struct pushes_options *opts);
/* Waiting requests go to the spool if there is a folder. */
void pushes_close(struct pushes *p);

/* Offer the files that are mapped now; destinations may want their debug information. files must stay. */
void pushes_offer(struct pushes *p, const struct track_files *files);

/* True from when a push is due until pushes_begin(). */
bool pushes_is_due(struct pushes *p);
void pushes_begin(struct pushes *p);
/* Milliseconds until a push is due; -1: not by itself. */
int pushes_wait_ms(const struct pushes *p);
/* Make a push due now. */
void pushes_hurry(struct pushes *p);
/* Write the requests into fd: slow, runs in the child. */
int pushes_make(const struct pushes *p, const struct result_source *src,
		const struct result_moment *moment, int fd);
/* Give the complete requests in fd to the senders. */
void pushes_take(struct pushes *p, int fd);
/* True if a request waits for a destination that seems to answer. */
bool pushes_are_waiting(const struct pushes *p);
/* The state of each target; the caller frees *ret. */
int pushes_view(const struct pushes *p, struct serve_push **ret, size_t *ret_cnt);

/*
 * Debug jobs: reduce a file of a followed process to names and lines (elf/debug_only.h), in a job of the reader
 * (proc/reader.h): main never opens or parses such a file.
 *
 * The job has the mapped file, and finds its separate debug file with the reader's rights, by code that reads only
 * identities. All else happens behind a seal (base/sandbox.h). It writes the reduced file into a pipe, as fast as it is
 * read. In the worst case a hostile file controls what is sent in its own name.
 */

#define DEBUG_JOB 2
/* Run a job of this kind; for reader_start(). */
int debug_job_run(int fd, const void *args, size_t args_bytes, int out_fd);

/*
 * In main: start a job, and wait a moment for what it says of the file: of the mapped file if it has DWARF, else of its
 * separate debug file (by build id, below the target's root, then on the host), else of the mapped file with the symbols it
 * has. -ENODATA: no names anywhere; -EAGAIN: the job has not answered, or there is no room for it now; -errno.
 */
int debug_job_start(struct reader *reader, const struct track_file *file,
		    struct debuginfo_file *ret);

#endif
