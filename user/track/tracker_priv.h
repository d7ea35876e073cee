/* SPDX-License-Identifier: MIT */
/* tracker_priv.h - the inside of a tracker: tracker.c works, tracker_ask.c answers, loaders.c probes loaders. */
#ifndef HT_TRACK_TRACKER_PRIV_H
#define HT_TRACK_TRACKER_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hmap.h"
#include "track/tracked.h"
#include "track/instances.h"
#include "track/taps.h"
#include "track/tracker.h"

struct engine;
struct guardian;
struct loaders;
struct probes;
struct reclaim;
struct track_file;
struct track_files;

struct tracker {
	struct engine *engine;
	struct track_files *files;
	struct guardian *guardian; /* attaches the probes */
	const struct track_policy *policy;
	struct tracked tracked;
	struct probes *probes;
	struct instances instances;
	struct taps taps;
	struct reclaim *reclaim;
	struct loaders *loaders; /* NULL: no process is held */
	struct hmap pinned; /* struct pinned_key of images whose samples are still wanted */
	uint32_t next_generation;
	uint64_t ordered_ns; /* when the sharers of events were last put in order */
	bool is_stopped;
	size_t next_idx; /* index of the process that is first in the next turn */
	uint64_t lost_cnt, lost_checked_ns; /* events that did not fit into the ring */
};

/* pid 0: any process, where they share their probes. */
struct tracked_process *tracker_find(const struct tracker *t, pid_t pid);

/*
 * loaders.c: probes the loaders of programs that are held at an exec (guardian/exec_hold.h), where
 * they tell debuggers of new libraries.
 */

/* only_pid: probe only this process's loader; 0: everybody's. -ENOMEM. */
int loaders_new(struct engine *e, struct guardian *g, pid_t only_pid, struct loaders **ret);
/* Detach the probes. NULL is fine. */
void loaders_free(struct loaders *l);

/*
 * A process has executed a program that has not begun to run: probe its loader from now on, if it
 * has one that tells debuggers. -ENOENT: no such loader, or a static program.
 */
int loaders_add(struct loaders *l, const struct track_files *files, pid_t pid);
/* The file is being forgotten. */
void loaders_forget_file(struct loaders *l, const struct track_file *file);

#endif
