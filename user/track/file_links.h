/* SPDX-License-Identifier: MIT */
/*
 * file_links.h - attaches the probes of one file, by sharing: links of its own for a process, one
 * event that is opened for each, or one link for every process.
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

struct file_links_options {
	struct engine *engine;
	struct guardian *guardian;
	bool has_events; /* SHARING_EVENT. The guardian has opened them, the engine has the programs. */
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
int file_links_new(const struct file_links_options *opts, const struct track_file *file,
		   struct file_links **ret);
/* NULL is fine. What was attached is the caller's; that in SHARING_EVENT must be gone. */
void file_links_free(struct file_links *aw);

/* May SHARING_EVENT be taken? */
bool file_links_has_event(const struct file_links *aw);
/* Into `links`; with an error some of it may be in there. Of a kind that the file has. */
int file_links_add(struct file_links *aw, enum probe_kind kind, enum sharing sharing,
		   const struct probe_target *target, struct held_links *links);
const struct tap_news *file_links_tap_news(const struct file_links *aw);
/* Events are made for the first process in SHARING_EVENT; this lets go of them after the last. */
void file_links_free_events(struct file_links *aw);

/* See probes_clean_children(). -ENOMEM or another -errno. */
int file_links_clean_children(const struct file_links *aw, const struct probe_target *target);

#endif
