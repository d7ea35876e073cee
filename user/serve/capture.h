/* SPDX-License-Identifier: MIT */
/*
 * capture.h - the daemon's side that records: the engine, the files and processes that have
 * probes, and the governor that keeps their cost within the budget.
 *
 * It is made in two steps, so that what can be refused is refused in a good order: first whether
 * this kernel can do it at all, then, when nothing else is in the way, maps and programs are
 * loaded. No process is attached to before the tracker is told to. What goes wrong is said on
 * stderr, but -ENOMEM.
 */
#ifndef HT_SERVE_CAPTURE_H
#define HT_SERVE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/attach.h"
#include "profile/recording.h"
#include "track/plan.h"
#include "track/probes.h"

struct capture;
struct engine;
struct engine_ops;
struct governor;
struct guardian;
struct texts;
struct track_files;
struct tracker;

struct capture_options {
	struct guardian *guardian; /* which attaches; it outlives the capture */
	enum attach_mode mode; /* that is wished for: capture_mode() is the one that was chosen */
	enum plan_way way;
	enum probes_source source;
	const struct texts *tap,
		*tap_exe; /* as in struct daemon_options; not needed after capture_new() */
	bool is_all; /* every process that maps a file may pay for its probes */
	uint64_t rate_bytes;
	uint64_t live_cap, stack_cap;
	struct recording_limit max_overhead; /* of each process */
	double max_overhead_host; /* of the time of all CPUs */
};

/* Looks at the kernel: -ENOTSUP and the like. ops, which are copied, are called with ctx from
 * engine_events_drain(). */
int capture_new(const struct capture_options *opts, const struct engine_ops *ops, void *ctx,
		struct capture **ret);
/* Loads BPF and measures what a probe costs. After a failure capture_free() is still due. */
int capture_start(struct capture *c);
/* Takes every probe out, and forgets governor and tracker; the rest stays for those that read. */
void capture_stop(struct capture *c);
/* After capture_stop(), or instead of it. */
void capture_free(struct capture *c);

enum attach_mode capture_mode(const struct capture *c);
/* From capture_start() on, owned by the capture. */
struct engine *capture_engine(const struct capture *c);
struct track_files *capture_files(const struct capture *c);
/* These until capture_stop(). */
struct tracker *capture_tracker(const struct capture *c);
struct governor *capture_governor(const struct capture *c);

#endif
