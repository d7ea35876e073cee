/* SPDX-License-Identifier: MIT */
/*
 * session.h - what every recording runs on, for a time or for good: BPF in the kernel, the files and processes that have
 * probes, and the governor that keeps their cost within a limit.
 *
 * It is made in two steps, so that what can be refused is refused in a good order: first whether this kernel can do it at
 * all, then, when nothing else is in the way, maps and programs are loaded. No process is attached to before the tracker
 * is told to. What goes wrong is said on stderr, but -ENOMEM of session_new().
 */
#ifndef HT_SESSION_SESSION_H
#define HT_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/allocators.h"
#include "budget/governor.h"
#include "kernel/attach.h"
#include "kernel/engine.h"
#include "kernel/features.h"
#include "track/tracker.h"

struct track_files;

/* Others only read it. */
struct session {
	const char *command; /* "record", "serve": for messages */
	struct kernel_features features;
	enum attach_mode mode; /* that was chosen */
	/* From session_start() on. */
	struct probe_costs costs; /* measured; zeros: they cannot be */
	struct engine *engine;
	struct track_files *files;
	/* These until session_stop(). */
	struct tracker *tracker;
	struct governor *governor;
};

struct session_options {
	struct engine_options engine; /* but the mode and is_verbose */
	struct engine_ops ops; /* called from engine_events_drain() */
	void *ctx;
	struct alloc_options alloc;
	struct tracker_options track; /* but the costs */
	struct governor_options governor; /* but the command and the costs */
	uint64_t rate_bytes; /* to begin with */
	uint64_t finest_rate_bytes; /* that may be set later; 0: no finer one than that */
	uint64_t throw_limit_bytes;
	bool may_be_unlimited; /* when the cost of a probe cannot be measured; else that is an error */
};

/* Looks at the kernel and chooses how to attach. -ENOTSUP and the like. */
int session_new(const char *command, enum attach_mode wanted, struct session **ret);
/* Loads BPF and measures what a probe costs. After a failure session_free() is still due. */
int session_start(struct session *s, const struct session_options *opts);
/* Takes every probe out, and forgets governor and tracker; the rest stays for those that read. NULL is fine. */
void session_stop(struct session *s);
/* After session_stop(), or instead of it. NULL is fine. */
void session_free(struct session *s);

#endif
