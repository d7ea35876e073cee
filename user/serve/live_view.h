/* SPDX-License-Identifier: MIT */
/*
 * live_view.h - what the followed processes hold now, for pages and metrics.
 *
 * Requests within LIVE_VIEW_AGE_NS share one snapshot and all that was made of it. The snapshot is taken in the
 * event loop, while BPF goes on recording. It has no stacks; most of its time is the kernel's, half a microsecond
 * or so for each sample that is outstanding. All requests together take at most a LIVE_VIEW_REST-th of a CPU's
 * time: a snapshot that took long is shown for longer.
 */
#ifndef HT_SERVE_LIVE_VIEW_H
#define HT_SERVE_LIVE_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct live_view;
struct result_source;
struct serve_view;

/* Pages may show data that is this old. */
#define LIVE_VIEW_AGE_NS (200 * NS_PER_MS)
#define LIVE_VIEW_REST 20

struct live_view_options {
	size_t scopes_max; /* maximum series of a process: see series_table.h */
	uint64_t live_cap, stack_cap; /* the engine's */
};

/* src is copied. */
int live_view_new(const struct result_source *src, const struct live_view_options *opts,
		  struct live_view **ret);
void live_view_free(struct live_view *lv);

/* Fill all but pushes, refused_cnt and own.profile_snapshot_seconds, which the caller fills. Pointers in *ret are
 * valid until the next call. */
int live_view_get(struct live_view *lv, struct serve_view *ret);

/* Read what is read little by little. Call a few times a second. */
void live_view_tick(struct live_view *lv);

#endif
