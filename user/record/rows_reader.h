/* SPDX-License-Identifier: MIT */
/*
 * rows_reader.h - reads what is resident of a process by row, beside the recording, or for serve.
 *
 * A sealed child reads, so nothing waits for the process but the child. What takes longer than its limit is told by
 * mapping, and a child that does not answer is killed: then the reading is unknown but for the size, with the reason.
 */
#ifndef HT_RECORD_ROWS_READER_H
#define HT_RECORD_ROWS_READER_H

#include "base/std.h"
#include "base/sandbox.h"
#include "profile/resident_rows.h"

struct reader;

struct rows_reader {
	struct sandbox_reading child;
	bool is_job; /* the reader's child: child.fd is all that is known of it */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; the child is killed then */
	uint64_t rss_bytes; /* as of the beginning */
	/* what it has written, if that is not too much */
	char bytes[sizeof(struct resident_reading) + 1];
	size_t byte_cnt;
	bool is_over; /* the answer is there, known or not */
	bool is_late; /* ... and it did not come in time */
	struct resident_reading answer;
};

/* What the child does: explain_process(), with short labels for the rows. If it fails, the reading is not known. */
void rows_reader_read(pid_t pid, struct resident_pins *pins, uint64_t limit_ns,
		      struct resident_reading *ret);

static inline bool rows_reader_is_at_work(const struct rows_reader *r)
{
	return r->child.child || r->is_job;
}

/* rss_bytes: of the process now, which decides how long it may take, but no longer than most_ns. pins: NULL, or what is
 * filled in; it is valid if the answer is proved. */
void rows_reader_begin(struct rows_reader *r, pid_t pid, uint64_t rss_bytes, uint64_t most_ns,
		       struct resident_pins *pins);
/* The same by a job of the reader (proc/reader.h), for a caller that serves others: uid owns the process, so jobs that wait
 * for ever for processes of one user cannot be many. */
void rows_reader_begin_job(struct rows_reader *r, struct reader *reader, uint32_t uid, pid_t pid,
			   uint64_t rss_bytes);
/* That job. */
#define ROWS_READER_JOB 4
int rows_reader_run_job(const void *args, size_t args_bytes, int out_fd);
/* Take what has come; waits for nothing. true: nothing more comes. */
bool rows_reader_work(struct rows_reader *r);
/* Unless the answer is there, it is unknown for this reason. Ends the child, if one was begun. */
void rows_reader_give_up(struct rows_reader *r, const char *why);

#endif
