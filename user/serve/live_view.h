/* SPDX-License-Identifier: MIT */
/*
 * live_view.h - what the followed processes hold now, for pages and metrics.
 *
 * Who asks within LIVE_VIEW_AGE_NS shares one snapshot and all that was made of it. The snapshot is
 * taken in the event loop, while BPF goes on recording: it is one without stacks, and the kernel needs
 * most of its time, half a microsecond or so for each sample that is outstanding. Whoever asks, all of
 * them together take a LIVE_VIEW_REST-th of the CPU's time at most: a snapshot that was long in the
 * making is shown for longer.
 */
#ifndef HT_SERVE_LIVE_VIEW_H
#define HT_SERVE_LIVE_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct live_view;
struct profile_source;
struct serve_view;

/* Pages may show what was so long ago. */
#define LIVE_VIEW_AGE_NS (200 * NS_PER_MS)
#define LIVE_VIEW_REST 20

struct live_view_options {
	size_t scopes_max; /* series of a process: see series_table.h */
	uint64_t live_cap, stack_cap; /* of the engine */
};

/* src is copied. */
int live_view_new(const struct profile_source *src, const struct live_view_options *opts,
		  struct live_view **ret);
void live_view_free(struct live_view *lv);

/* All but pushes, refused_cnt and own.profile_snapshot_seconds, which are the caller's to fill.
 * What it points to holds until the next call. */
int live_view_get(struct live_view *lv, struct serve_view *ret);

/* What is read little by little. To be called a few times a second. */
void live_view_tick(struct live_view *lv);

#endif
