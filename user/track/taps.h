/* SPDX-License-Identifier: MIT */
/*
 * taps.h - which of the tracked processes are tapped, and how often they are sampled.
 *
 * All allocators of a process are tapped, or none: with half of them, frees would appear of
 * allocations that were never seen. Until it is known whether that is possible, its allocators are
 * not probed. Allocators that are mapped later are tapped, too; if one cannot be, its allocations
 * are not seen, and this is logged.
 *
 * Internal to tracker.c.
 */
#ifndef HT_TRACK_TAPS_H
#define HT_TRACK_TAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "track/tap_rate.h"

struct engine;
struct tracked;
struct tracked_process;
struct instances;
struct probes;
struct recording_limit;
struct track_policy;

struct taps {
	struct engine *engine;
	struct probes *probes;
	struct tracked *tracked;
	struct instances *instances;
	const struct track_policy *policy;
	uint64_t quiet_until_ns; /* no process is tapped before */
	bool is_patient; /* nobody else waits: try again at once */
	struct tap_unit family;
};

/* No process is ever tapped. */
bool taps_are_off(const struct taps *ts);
/* For a new process: do not probe it until it is known whether it can be tapped. not_before_ns: when to try. */
int taps_await(const struct taps *ts, struct tracked_process *p, uint64_t not_before_ns);
/* After its mappings were read: tap what is not tapped yet. -ESRCH: it is gone. */
int taps_process(struct taps *ts, struct tracked_process *p);
/* Update its rate, if it is time. */
void taps_adjust(struct taps *ts, struct tracked_process *p);
/* pid 0: the family. */
void taps_limit(struct taps *ts, pid_t pid, const struct recording_limit *limit);
/* Is it tapped? pid 0: are all, but for those whose tap is not due yet? false when there is no process. */
bool taps_is_in(const struct taps *ts, pid_t pid);
/* The guardian that held the tap was killed: remove the tap from here. */
void taps_repair(const struct tracked_process *p);

#endif
