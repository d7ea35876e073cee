/* SPDX-License-Identifier: MIT */
/*
 * attach_ways.h - the ways of attaching the probes of one file: links of its own for a process, one
 * event that is opened for each, or one link for every process.
 */
#ifndef HT_TRACK_ATTACH_WAYS_H
#define HT_TRACK_ATTACH_WAYS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "track/plan.h"
#include "track/probe_sites.h"

struct attach_ways;
struct engine;
struct guardian;
struct held_links;
struct track_file;

struct attach_ways_options {
	struct engine *engine;
	struct guardian *guardian;
	bool has_events; /* PLAN_EVENT. The guardian has opened them, the engine has the programs. */
	struct probe_rules rules;
	uint64_t tap_rate_bytes;
};

/* Of the last PROBE_TAP. */
struct tap_news {
	uint64_t stopped_ns;
	uint32_t thread_cnt;
	struct err why; /* it was not */
};

enum probe_kind {
	PROBE_FREES,
	PROBE_ALLOCS,
	PROBE_TAGS, /* with which a program tells of its scopes; always links */
	PROBE_SAMPLER, /* ... of what it samples itself; always links */
	PROBE_TAP, /* a tap of its allocator, with its probes */
};

struct probe_target {
	pid_t pid; /* 0: all processes */
	pid_t live_tid; /* a thread of it that runs; 0 for all */
};

/* The file must outlive it. -ENOMEM. */
int attach_ways_new(const struct attach_ways_options *opts, const struct track_file *file,
		    struct attach_ways **ret);
/* NULL is fine. What was attached is the caller's; that in PLAN_EVENT must be gone. */
void attach_ways_free(struct attach_ways *aw);

/* May PLAN_EVENT be taken? */
bool attach_ways_has_event(const struct attach_ways *aw);
/* Into `links`; with an error some of it may be in there. Of a kind that the file has. */
int attach_ways_add(struct attach_ways *aw, enum probe_kind kind, enum plan_way way,
		    const struct probe_target *target, struct held_links *links);
const struct tap_news *attach_ways_tap_news(const struct attach_ways *aw);
/* Events are made for the first process in PLAN_EVENT; this lets go of them after the last. */
void attach_ways_free_events(struct attach_ways *aw);

/* See probes_clean_children(). -ENOMEM or another -errno. */
int attach_ways_clean_children(const struct attach_ways *aw, const struct probe_target *target);

#endif
