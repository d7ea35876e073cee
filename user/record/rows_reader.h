/* SPDX-License-Identifier: MIT */
/*
 * rows_reader.h - reads what is resident of a process by row, beside the recording.
 *
 * A sealed child reads, so nothing waits for the process but the child. What takes longer than its limit is told by
 * mapping, and a child that does not answer is killed: then the reading is unknown but for the size, with the reason.
 */
#ifndef HT_RECORD_ROWS_READER_H
#define HT_RECORD_ROWS_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/sandbox.h"
#include "profile/resident_rows.h"

struct rows_reader {
	struct sandbox_reading child;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; the child is killed then */
	uint64_t rss_bytes; /* as of the beginning */
	/* what it has written, if that is not too much */
	char bytes[sizeof(struct resident_reading) + 1];
	size_t byte_cnt;
	bool is_over; /* the answer is there, known or not */
	struct resident_reading answer;
};

/* rss_bytes: of the process now, which decides how long it may take, but no longer than most_ns. */
void rows_reader_begin(struct rows_reader *r, pid_t pid, uint64_t rss_bytes, uint64_t most_ns);
/* Take what has come; waits for nothing. true: nothing more comes. */
bool rows_reader_work(struct rows_reader *r);
/* Unless the answer is there, it is unknown for this reason. Ends the child, if one was begun. */
void rows_reader_give_up(struct rows_reader *r, const char *why);

#endif
