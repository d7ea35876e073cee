/* SPDX-License-Identifier: MIT */
/*
 * session.h - what every recording runs on, short or long: BPF in the kernel, the files and
 * processes that have probes, and the governor that keeps their cost within a limit.
 *
 * It is made in two steps, so that refusals come in a good order: first whether this kernel can do
 * it at all; then, when nothing else is in the way, maps and programs are loaded. No process is
 * attached to before the tracker is told to. Errors are printed on stderr, except -ENOMEM of
 * session_new().
 */
#ifndef HT_TRACK_SESSION_H
#define HT_TRACK_SESSION_H

#include "base/std.h"
#include "track/governor.h"
#include "kernel/attach.h"
#include "kernel/engine.h"
#include "kernel/features.h"
#include "track/policy.h"
#include "track/tracker.h"

struct track_files;

/* Read-only for others, except the policy. */
struct session {
	const char *command; /* "record", "serve": for messages */
	struct kernel_features features;
	enum attach_mode mode; /* as chosen */
	struct track_policy policy; /* set it before session_start(), which adds the costs */
	/* From session_start() on. */
	struct probe_costs costs; /* measured; zeros: not measurable */
	struct engine *engine;
	struct track_files *files;
	/* These until session_stop(). */
	struct tracker *tracker;
	struct governor *governor;
};

struct session_options {
	struct engine_options engine; /* except what session and policy know */
	struct engine_ops ops; /* called from engine_events_drain() */
	void *ctx;
	struct guardian *guardian; /* attaches the probes */
	struct governor_options governor; /* except the command and the costs */
	uint64_t rate_bytes; /* at first */
	/* Finest rate that may be set later; 0: none finer than rate_bytes */
	uint64_t finest_rate_bytes;
	uint64_t throw_limit_bytes;
	/* Allowed if the cost of a probe cannot be measured; else that is an error */
	bool may_be_unlimited;
};

/* Look at the kernel and choose the attach mode. -ENOTSUP and the like. */
int session_new(const char *command, enum attach_mode wanted, struct session **ret);
/* Load BPF and measure the cost of a probe. After a failure session_free() is still needed. */
int session_start(struct session *s, const struct session_options *opts);
/* Detach all probes, and free governor and tracker; the rest stays for readers. NULL is fine. */
void session_stop(struct session *s);
/* After session_stop(), or instead of it. NULL is fine. */
void session_free(struct session *s);

#endif
