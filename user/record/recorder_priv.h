/* SPDX-License-Identifier: MIT */
/*
 * recorder_priv.h - the parts of a recorder: recorder_open.c sets it up, recorder.c runs it, others do small parts
 * of that.
 */
#ifndef HT_RECORD_RECORDER_PRIV_H
#define HT_RECORD_RECORDER_PRIV_H

#include "base/std.h"
#include "base/clock.h"
#include "record/idle_tasks.h"
#include "record/recorder.h"
#include "record/rows_reader.h"
#include "record/targets.h"
#include "track/session.h"

struct exec_hold;

#define MOMENT_INTERVAL_NS \
	200000000ULL /* between moments of what is in use, at first: see profile/history.h */

#define ROWS_MOST_NS (6 * NS_PER_S) /* for a reading of what is resident by row */

/* The text of the status line while a recording runs. */

/* The last seconds, for the rate. Zero-initialised. */
#define LIVE_LINE_POINTS 16
struct live_line {
	struct live_point {
		uint64_t time_ns;
		double held_bytes;
	} points[LIVE_LINE_POINTS];
	size_t cnt; /* ever added */
};

struct live_now {
	uint64_t time_ns, elapsed_ns;
	bool has_held; /* false: frees are not watched */
	double held_bytes;
	double cost; /* share of CPU time, or of one CPU; NAN: not known */
	bool is_of_one_cpu; /* cost is in one CPU, as the limit in force */
	bool is_largest_cost; /* the largest of several processes */
	const char *loss; /* loss to show at once; NULL: none */
};

#define LIVE_LINE_BYTES 128
/* "12.4 s: in use 451 KiB (+110 KiB/s), cost 9 %", "... cost 4 % of one CPU" */
void live_line_text(struct live_line *l, const struct live_now *now,
		    char buf[static LIVE_LINE_BYTES]);

struct recorder {
	struct recorder_options opts;
	struct targets targets;
	struct guardian *guardian;
	struct session *session;
	struct process_events *events;
	struct launch *launch;
	struct exec_hold *hold; /* NULL: nobody is held at an exec */
	struct snapshot *snapshot;
	struct recorder_facts facts;
	struct loop *loop;
	bool is_over;
	int error; /* that ended it early */
	bool has_warned; /* about the overhead */
	struct idle_tasks idle_tasks;
	struct history *history; /* NULL: there was no memory for it */
	uint64_t counters_ns, looked_ns; /* of reading them; of checking the processes */
	struct live_line live_line;
	bool has_rows; /* both of these were begun */
	size_t rows_target; /* whose they are, in targets: the largest when it began */
	struct rows_reader rows_begin, rows_end;
	struct resident_pins pins; /* of rows_end */
	struct resident_reading rows_latest; /* with refreshes_rows */
	uint64_t rows_due_ns;
};

/* Make the loop, which runs several times a second, and watch what ends it: the guardian, the program, the reader of its
 * output, a guest. Signals end the recording from here on. */
int recorder_loop_new(struct recorder *r);

/* Why probe sites could not be had; err: of the last of them. */
const char *recorder_failed_why(const struct recorder *r, int err);
/* Report what a heap other than malloc's means for the recording. */
void recorder_say_heap(const struct target *t);

#endif
