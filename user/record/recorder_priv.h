/* SPDX-License-Identifier: MIT */
/*
 * recorder_priv.h - the parts of a recorder: recorder_open.c sets it up, recorder.c runs it, others do small parts
 * of that.
 */
#ifndef HT_RECORD_RECORDER_PRIV_H
#define HT_RECORD_RECORDER_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "record/live_line.h"
#include "record/recorder.h"
#include "record/rows_reader.h"
#include "record/targets.h"
#include "track/budget.h"
#include "track/session.h"

struct engine;
struct governor;
struct target;
struct targets;
struct tracker;

#define MOMENT_INTERVAL_NS \
	200000000ULL /* between moments of what is in use, at first: see profile/history.h */

#define ROWS_MOST_NS (6 * NS_PER_S) /* for a reading of what is resident by row */

struct recorder {
	struct recorder_options opts;
	struct targets targets;
	struct guardian *guardian;
	struct session *session;
	struct process_events *events;
	struct launch *launch;
	struct holds *holds; /* NULL: nobody is held at an exec */
	struct snapshot *snapshot;
	struct recorder_facts facts;
	struct loop *loop;
	bool is_over;
	int error; /* that ended it early */
	bool has_warned; /* about the overhead */
	struct idle_tasks *idle_tasks;
	struct history *history; /* NULL: there was no memory for it */
	uint64_t counters_ns, looked_ns; /* of reading them; of checking the processes */
	struct live_line live_line;
	bool has_rows; /* both of these were begun */
	struct rows_reader rows_begin, rows_end;
	struct resident_reading rows_latest; /* with refreshes_rows */
	uint64_t rows_due_ns;
};

/* Callbacks of the loop; ctx is the recorder. */
void recorder_on_signal(void *ctx, int signal);
void recorder_on_tick(void *ctx);
void recorder_on_child_end(void *ctx, int fd);
void recorder_on_guardian_news(void *ctx, int fd);
void recorder_on_reader_gone(void *ctx, int fd);
void recorder_visit(void *ctx, int fd);

/* Why probe sites could not be had; err: of the last of them. */
const char *recorder_failed_why(const struct recorder *r, int err);
/* Report what a heap other than malloc's means for the recording. */
void recorder_say_heap(const struct target *t);

#endif
