/* SPDX-License-Identifier: MIT */
/*
 * taps.h - which of the tracked processes are tapped, and how often they are sampled.
 *
 * All allocators of a process or none: half of them would show frees of what was never seen. Until it is known
 * whether that can be its allocators are not probed. What is mapped later is tapped as well; where that cannot be,
 * what it allocates is not seen, and that is said.
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

struct taps {
	struct engine *engine;
	struct probes *probes;
	struct tracked *tracked;
	struct instances *instances;
	/* As in struct tracker_options. */
	uint64_t rate_bytes;
	bool rate_is_fixed;
	bool is_family; /* all count their hits together: one unit */
	bool (*may_tap)(void *ctx, pid_t pid);
	void *may_tap_ctx;
	struct tap_unit family;
};

/* None is tapped, ever. */
bool taps_are_off(const struct taps *ts);
/* A new one: it is not probed until it is known whether it can be tapped; not_before_ns: when that is tried. */
int taps_await(const struct taps *ts, struct tracked_process *p, uint64_t not_before_ns);
/* Its mappings were read: taps what is not tapped yet. -ESRCH: it is gone. */
int taps_process(struct taps *ts, struct tracked_process *p);
/* Brings the rate of those up to date for which it is time. */
void taps_adjust(struct taps *ts, struct tracked_process *p);
/* pid 0: the family. */
void taps_limit(struct taps *ts, pid_t pid, const struct recording_limit *limit);
/* pid 0: all are. */
bool taps_is_in(const struct taps *ts, pid_t pid);
/* The guardian that held it was killed: takes it out from here. */
void taps_repair(const struct tracked_process *p);

#endif
