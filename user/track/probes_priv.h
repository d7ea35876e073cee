/* SPDX-License-Identifier: MIT */
/*
 * probes_priv.h - the inside of the probes: probes.c handles processes that come, keep more or fewer probes, and go;
 * file_probes.c attaches and detaches what one file has in each of them, and moves it to another sharing; file_links.c
 * attaches a single kind of that.
 */
#ifndef HT_TRACK_PROBES_PRIV_H
#define HT_TRACK_PROBES_PRIV_H

#include "base/std.h"
#include "base/hmap.h"
#include "base/vec.h"
#include "heaptap/abi.h"
#include "track/policy.h"
#include "track/probes.h"

struct engine;
struct guardian;
struct held_links;
struct track_file;

enum probe_kind {
	PROBE_FREES,
	PROBE_ALLOCS,
	PROBE_TAGS, /* by which a program reports its scopes; always links */
	PROBE_SAMPLER, /* by which it reports its own samples; always links */
	PROBE_TAP, /* a tap of its allocator, and the tap's probes */
};

/* Of a move to another sharing: see file_probes.c. */
enum move_step { STEP_NONE, STEP_BOTH, STEP_LAST_CALLS };

/* A file's probes in one process, or in all; no links if attaching failed. */
struct file_member {
	pid_t pid; /* 0: all processes */
	pid_t live_tid; /* a running thread of it; 0 for all processes */
	int failed_err; /* of attaching; 0: none */
	struct held_links *allocs[HT_SHARING_CNT], *frees[HT_SHARING_CNT]; /* by sharing */
	struct held_links *tags, *sampler, *tap;
	bool wants_tap;
	uint64_t seen_ns; /* when its allocator was first probed or tapped; 0: not yet */
	uint64_t event_turn; /* its turn of joining the event; the highest joined last */
};

struct file_probes {
	struct probes *all;
	const struct track_file *file;
	VEC(struct file_member) members; /* tracked processes that map the file */
	struct file_member everyone;
	bool everyone_is_probed; /* or was tried */
	/* Tags are probed for everyone from the first process on. Such links have few hits and never move. */
	bool has_shared_tags;
	uint64_t event_turns;
	uint64_t alloc_events, free_events; /* events of the guardian; 0: none */
	struct tap_news tap_news;
	/* Of moves. */
	enum sharing sharing; /* during a move: the new one */
	enum sharing old_sharing;
	enum move_step step;
	uint64_t step_ns;
	uint64_t may_move_ns, may_have_event_ns;
	bool has_changed; /* processes, or what they keep, since the last plan */
};

struct probes {
	struct engine *engine;
	struct guardian *guardian;
	const struct track_policy *policy;
	struct hmap kept; /* pid (0: all) -> enum probes_kept, unless it is PROBES_ALL */
	struct hmap sampled; /* pid -> 1: the process samples itself */
	bool is_unshared; /* what policy_is_shared() says does not hold any more */
	int seeds_fd; /* of the next tap: a struct tap_seeds; -1: none */
	bool is_paused; /* processes without an entry in `kept` keep PROBES_NONE; else PROBES_ALL */
	VEC(struct file_probes) files; /* each valid until the next add or del */
	struct held_links *gone; /* of ended processes, to be detached together; NULL: none */
	uint64_t gone_ns; /* since when */
	struct probes_counts counts;
};

/*
 * file_probes.c: frees are attached first, so that no allocation is seen whose free could be missed. Links to be
 * detached are gathered, because closing many at once takes as long as closing one.
 */

/* Detach what is left of ended processes now. */
void file_probes_detach_gone(struct probes *p);
/* Detach all probes of the file. */
void file_probes_release(struct file_probes *fp);
/* NULL: not a member. Valid until the next add or del. */
struct file_member *file_probes_find(const struct file_probes *fp, pid_t pid);
/*
 * Add a process that is not a member yet; there is room for it. Attach what it keeps. On an error other than -ENOMEM it
 * becomes a member without links. *ret_is_new: sites of the allocator were attached now, not already for everyone.
 */
int file_probes_add(struct file_probes *fp, pid_t pid, pid_t live_tid, bool *ret_is_new);
/* Remove a member with its probes. has_ended: its process has ended; the probes go later, with those of others, without a
 * wait here. */
void file_probes_del(struct file_probes *fp, struct file_member *m, bool has_ended);
/* Events are bound to a thread, which may end before the process. */
int file_probes_follow_thread(struct file_probes *fp, struct file_member *m, pid_t live_tid);
/* What the process keeps has changed: attach what is missing, and move everything else to `gone`. */
int file_probes_keep(struct file_probes *fp, pid_t pid, pid_t live_tid, struct held_links *gone);
/* Tap the allocator in a member, now and whenever it keeps its allocation probes again; if it is tapped, also in
 * further copies of the file. fp->tap_news says how it went. */
int file_probes_tap(struct file_probes *fp, struct file_member *m);
/* Of the members that share an event, bring one to the front if that is worth it: see plan_front().
 * -ESRCH: it has ended. After any other error, too, everything is as before. */
int file_probes_order(struct file_probes *fp, const struct probes_activity *a);
/* Detach what is there for everyone. Members get their own probes when they are to keep some. */
void file_probes_unshare(struct file_probes *fp);
/* Move the allocation probes of all members and sharings to `gone`. Samplers stay: one probe set
 * covers their allocations and frees. */
void file_probes_gather_allocs(struct file_probes *fp, struct held_links *gone);

/*
 * file_links.c: own links for each process, one event that is opened for each process, or one link for all processes;
 * which sites, in which order, and with cookies that tell BPF the file and the sharing.
 */

/* Can SHARING_EVENT be used? */
bool file_links_has_event(const struct file_probes *fp);
/* Attach probes of one kind, which the file must have, and add them to `links`. On error `links`
 * may have some of them. */
int file_links_add(struct file_probes *fp, enum probe_kind kind, enum sharing sharing,
		   const struct file_member *m, struct held_links *links);
/* Events are made for the first process in SHARING_EVENT. Free them after the last. */
void file_links_free_events(struct file_probes *fp);

/*
 * file_probes.c: when processes come and go, a plan (plan.c) may find another sharing better. The new probes are
 * attached before the old ones go, no hit is missed or counted twice, and the program is never stopped.
 */

/* ns per hit, as plan_hit_ns() says. */
double file_sharing_hit_ns(const struct file_probes *fp);
/* Plan now, if the file may move; for a new file choose the first sharing, and attach nothing yet. process_cnt includes
 * processes that are about to come. */
void file_sharing_plan(struct file_probes *fp, size_t process_cnt);
/* Take the next step of a move, or plan if something changed. */
void file_sharing_work(struct file_probes *fp);

#endif
