/* SPDX-License-Identifier: MIT */
/*
 * file_probes.h - the attached probes of one file, by sharing: for each tracked process that maps
 * it, and for everyone.
 *
 * Frees are attached first, so that no allocation is seen whose free could be missed. Links to be
 * detached are gathered, because closing many at once takes as long as closing one.
 */
#ifndef HT_TRACK_FILE_PROBES_H
#define HT_TRACK_FILE_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "track/file_links.h"
#include "track/plan.h"
#include "track/probes_kept.h"

struct file_member;
struct file_probes;
struct held_links;
struct tap_lost;
struct tap_news;
struct track_file;

/* All must outlive it. -ENOMEM. */
int file_probes_new(struct engine *e, struct guardian *guardian, const struct track_policy *policy,
		    const struct kept_table *kept, const struct track_file *file,
		    struct file_probes **ret);
/* Detach all probes. NULL is fine. */
void file_probes_free(struct file_probes *fp);

const struct track_file *file_probes_file(const struct file_probes *fp);
/* Can SHARING_EVENT be used? */
bool file_probes_has_event(const struct file_probes *fp);
/* Probe tags for everyone from the first process on. Such links have few hits and never move. */
void file_probes_share_tags(struct file_probes *fp);
bool file_probes_shares_tags(const struct file_probes *fp);

/* Read what the file's sampler reports, in every process that maps the file. */
void file_probes_use_sampler(struct file_probes *fp);
/* Never probe the file's allocator. */
void file_probes_leave_allocator(struct file_probes *fp);

/* Reserve room for one more member, so that file_probes_add() cannot fail for lack of it. -ENOMEM. */
int file_probes_reserve(struct file_probes *fp);
/*
 * Add a process that is not a member yet, after file_probes_reserve(). Attach what it keeps, with
 * this sharing. On an error other than -ENOMEM it becomes a member without links
 * (file_member_err()). *ret_is_new: sites of the allocator were attached now, not already for
 * everyone.
 */
int file_probes_add(struct file_probes *fp, pid_t pid, pid_t live_tid, enum sharing sharing,
		    bool *ret_is_new);
/* Remove a member with its probes. has_ended: its process has ended; the probes go later, without a wait here. */
void file_probes_del(struct file_probes *fp, struct file_member *m, bool has_ended);
size_t file_probes_cnt(const struct file_probes *fp);
/* NULL: not a member. Valid until the next add or del. */
struct file_member *file_probes_find(const struct file_probes *fp, pid_t pid);
/* The member that stands for all processes; not counted. */
struct file_member *file_probes_everyone(struct file_probes *fp);
/* Does some process keep less than all? Links for everyone cannot exclude one process. */
bool file_probes_is_anyone_limited(const struct file_probes *fp);

/* Error of attaching its probes; 0: none. */
int file_member_err(const struct file_member *m);
/* Since when it has seen what its allocator allocates; 0: never so far. */
uint64_t file_member_seen_ns(const struct file_member *m);
/* false: the thread is the same as before. */
bool file_member_set_thread(struct file_member *m, pid_t live_tid);

/*
 * Bring the probes of one member up to date: the allocator's with one sharing, tags, sampler or
 * tap. Attach what `kept` requires and is missing; move everything else to `gone`, or close it when
 * `gone` is NULL.
 */
int file_probes_sync_sharing(struct file_probes *fp, struct file_member *m, enum sharing sharing,
			     enum probes_kept kept, struct held_links *gone);
int file_probes_sync_tags(struct file_probes *fp, struct file_member *m, enum probes_kept kept,
			  struct held_links *gone);
int file_probes_sync_sampler(struct file_probes *fp, struct file_member *m, enum probes_kept kept,
			     struct held_links *gone);
int file_probes_sync_tap(struct file_probes *fp, struct file_member *m, enum probes_kept kept,
			 struct held_links *gone);
/* Tap the allocator in a member, now and whenever file_probes_sync_tap() is called.
 * file_probes_tap_news() says how it went. */
int file_probes_tap(struct file_probes *fp, struct file_member *m, enum probes_kept kept);
/* The process may map more copies of the file by now: tap those as well. */
int file_probes_tap_copies(struct file_probes *fp, struct file_member *m);
void file_probes_untap(struct file_member *m);
bool file_member_is_tapped(const struct file_member *m);
/* As held_links_set_tap(). -ENOENT: it has no tap. */
int file_member_set_tap(const struct file_member *m, uint64_t rate_bytes, struct tap_lost *ret);
const struct tap_news *file_probes_tap_news(const struct file_probes *fp);
/* Attach what each member keeps, with this sharing. Skips members that have just ended. */
int file_probes_sync_all(struct file_probes *fp, enum sharing sharing);

/* Recent hits per second of a process. */
struct probes_activity {
	double (*hits_per_s)(void *ctx, pid_t pid);
	void *ctx;
};
/* Of the members that share an event, bring one to the front if that is worth it: see plan_front().
 * -ESRCH: it has ended. After any other error, too, everything is as before. */
int file_probes_order(struct file_probes *fp, const struct probes_activity *a, double hit_ns);

/* Detach one sharing of one member, or of all members. */
void file_probes_stop_member(struct file_member *m, enum sharing sharing);
void file_probes_stop_sharing(struct file_probes *fp, enum sharing sharing);
/* Move the allocation probes of all members and sharings to `gone`. Samplers stay: one probe set
 * covers their allocations and frees. */
void file_probes_gather_allocs(struct file_probes *fp, struct held_links *gone);

/* See probes_clean_children(). -ENOMEM or another -errno. */
int file_probes_clean_children(const struct file_probes *fp, const struct file_member *m);

#endif
