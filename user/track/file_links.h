/* SPDX-License-Identifier: MIT */
/*
 * file_links.h - attaches the probes of one file, by sharing: own links for each process, one event
 * that is opened for each process, or one link for all processes.
 */
#ifndef HT_TRACK_FILE_LINKS_H
#define HT_TRACK_FILE_LINKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "track/plan.h"
#include "track/probe_sites.h"

struct file_links;
struct engine;
struct guardian;
struct held_links;
struct track_file;
struct track_policy;

/* How the last PROBE_TAP went. */
struct tap_news {
	uint64_t stopped_ns;
	uint32_t thread_cnt;
	struct err why; /* why it failed */
};

enum probe_kind {
	PROBE_FREES,
	PROBE_ALLOCS,
	PROBE_TAGS, /* by which a program reports its scopes; always links */
	PROBE_SAMPLER, /* by which it reports its own samples; always links */
	PROBE_TAP, /* a tap of its allocator, and the tap's probes */
};

struct probe_target {
	pid_t pid; /* 0: all processes */
	pid_t live_tid; /* a running thread of it; 0 for all processes */
};

/* All must outlive it. -ENOMEM. */
int file_links_new(struct engine *e, struct guardian *guardian, const struct track_policy *policy,
		   const struct track_file *file, struct file_links **ret);
/* NULL is fine. Attached links belong to the caller; those in SHARING_EVENT must be gone before. */
void file_links_free(struct file_links *fl);

/* Can SHARING_EVENT be used? */
bool file_links_has_event(const struct file_links *fl);
/* Attach probes of one kind, which the file must have, and add them to `links`. On error `links`
 * may have some of them. */
int file_links_add(struct file_links *fl, enum probe_kind kind, enum sharing sharing,
		   const struct probe_target *target, struct held_links *links);
const struct tap_news *file_links_tap_news(const struct file_links *fl);
/* Events are made for the first process in SHARING_EVENT. Free them after the last. */
void file_links_free_events(struct file_links *fl);

/* See probes_clean_children(). -ENOMEM or another -errno. */
int file_links_clean_children(const struct file_links *fl, const struct probe_target *target);

#endif
