/* SPDX-License-Identifier: MIT */
/* tracker_priv.h - a tracker from within: tracker.c works, tracker_ask.c answers, loaders.c has the loaders probed. */
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
	struct tracker_options opts;
	struct tracked tracked;
	struct probes *probes;
	struct instances instances;
	struct taps taps;
	struct reclaim *reclaim;
	struct loaders *loaders; /* NULL: nobody is held */
	struct hmap held; /* struct held_key of images whose samples are still wanted */
	uint32_t next_generation;
	uint64_t ordered_ns; /* when the sharers of events were last put in order */
	bool is_stopped;
	size_t next_idx; /* of the process that comes first in the next turn */
	uint64_t lost_cnt, lost_checked_ns; /* events that did not fit into the ring */
};

/* The process; pid 0: any one, where they share their probes. */
struct tracked_process *tracker_find(const struct tracker *t, pid_t pid);

/*
 * loaders.c: of programs that are held at an exec (guardian/exec_hold.h): their loaders, probed where they tell
 * debuggers that libraries have come.
 */

/* only_pid: nobody else's loader is probed; 0: everybody's. -ENOMEM. */
int loaders_new(struct engine *e, struct guardian *g, pid_t only_pid, struct loaders **ret);
/* Takes the probes out. NULL is fine. */
void loaders_free(struct loaders *l);

/*
 * A process has executed a program and has not begun: its loader is probed from now on, if it has one that
 * tells debuggers. -ENOENT: it has not, or is static.
 */
int loaders_add(struct loaders *l, const struct track_files *files, pid_t pid);
/* Of a file that is forgotten. */
void loaders_forget_file(struct loaders *l, const struct track_file *file);

#endif
