/* SPDX-License-Identifier: MIT */
/* tracker_priv.h - a tracker from within: shared by tracker.c, which works, and tracker_ask.c, which answers. */
#ifndef HT_TRACK_TRACKER_PRIV_H
#define HT_TRACK_TRACKER_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hmap.h"
#include "track/followed.h"
#include "track/instances.h"
#include "track/taps.h"
#include "track/tracker.h"

struct loaders;
struct probes;
struct reclaim;

struct tracker {
	struct engine *engine;
	struct track_files *files;
	struct tracker_options opts;
	struct followed followed;
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
struct followed_process *tracker_find(const struct tracker *t, pid_t pid);

#endif
