/* SPDX-License-Identifier: MIT */
/*
 * recorder_priv.h - what the two parts of a recorder share: recorder_open.c sets it up, recorder.c runs it.
 */
#ifndef HT_RECORD_RECORDER_PRIV_H
#define HT_RECORD_RECORDER_PRIV_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernel/features.h"
#include "record/live_line.h"
#include "record/recorder.h"
#include "record/targets.h"

#define MOMENT_INTERVAL_NS \
	200000000ULL /* of what is in use, to begin with: see profile/history.h */

/* What its loop waits for. */
enum source {
	SOURCE_SIGNAL,
	SOURCE_TICK,
	SOURCE_RING,
	SOURCE_MMAP,
	SOURCE_CHILD,
	SOURCE_GUARDIAN,
	SOURCE_HOLD,
	SOURCE_READER,
	SOURCE_GUEST
};

struct recorder {
	struct recorder_options opts;
	struct targets targets;
	struct kernel_features features;
	struct guardian *guardian;
	struct engine *engine;
	struct track_files *files;
	struct tracker *tracker;
	struct process_events *events;
	struct launch *launch;
	struct holds *holds; /* NULL: nobody is held at an exec */
	struct snapshot *snapshot;
	struct probe_costs costs;
	struct governor *governor;
	struct recorder_facts facts;
	int epoll_fd, signal_fd, tick_fd;
	sigset_t old_mask;
	bool mask_is_set;
	bool is_over;
	bool has_warned; /* of the overhead */
	struct idle_tasks *idle_tasks;
	struct history *history; /* NULL: there was no memory for it */
	uint64_t counters_ns,
		looked_ns; /* when they were read, and who is recorded was looked at */
	struct live_line live_line;
};

/* What a heap that is not malloc's means for the recording. */
void recorder_say_heap(const struct target *t);

#endif
