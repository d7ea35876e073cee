/* SPDX-License-Identifier: MIT */
/*
 * file_probes.h - the probes of one file that are in: for each tracked process that maps it, and
 * for everyone, by sharing.
 *
 * Putting in begins with what frees, so that no allocation is seen whose free could be missed. What is
 * taken out is gathered, for many links that are closed at once take as long as one.
 */
#ifndef HT_TRACK_FILE_PROBES_H
#define HT_TRACK_FILE_PROBES_H

#include <stdbool.h>
#include <stddef.h>
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

/* opts is copied; kept and file must outlive it. -ENOMEM. */
int file_probes_new(const struct file_links_options *opts, const struct kept_table *kept,
		    const struct track_file *file, struct file_probes **ret);
/* Takes every probe out. NULL is fine. */
void file_probes_free(struct file_probes *fp);

const struct track_file *file_probes_file(const struct file_probes *fp);
/* May SHARING_EVENT be taken? */
bool file_probes_has_event(const struct file_probes *fp);
/* Tags are probed for everyone, from the first process on: few hits, they never move. */
void file_probes_share_tags(struct file_probes *fp);
bool file_probes_shares_tags(const struct file_probes *fp);

/* What the file's sampler tells is read, of everyone who maps it. */
void file_probes_use_sampler(struct file_probes *fp);
/* Its allocator is left alone, whoever asks. */
void file_probes_leave_allocator(struct file_probes *fp);

/* Room for one more member, so that adding it cannot fail for want of that. -ENOMEM. */
int file_probes_reserve(struct file_probes *fp);
/*
 * A process that is not a member yet, and for which room was reserved: what it keeps, with that sharing.
 * With an error it is a member without links (file_member_err()), but not with -ENOMEM. ret_is_new: sites of
 * the allocator came to be probed, so they were not for everyone before.
 */
int file_probes_add(struct file_probes *fp, pid_t pid, pid_t live_tid, enum sharing sharing,
		    bool *ret_is_new);
/* With its probes. */
/* has_ended: the process has; its probes go later, without a wait here. */
void file_probes_del(struct file_probes *fp, struct file_member *m, bool has_ended);
size_t file_probes_cnt(const struct file_probes *fp);
/* NULL: not a member. Holds until the next add or del. */
struct file_member *file_probes_find(const struct file_probes *fp, pid_t pid);
/* The one that stands for all processes; not counted. */
struct file_member *file_probes_everyone(struct file_probes *fp);
/* Links for everyone cannot let one process off. */
bool file_probes_is_anyone_limited(const struct file_probes *fp);

/* Why its probes could not be had; 0: they could. */
int file_member_err(const struct file_member *m);
/* false: it was this thread before. */
bool file_member_set_thread(struct file_member *m, pid_t live_tid);

/*
 * The allocator's probes of a member with one sharing, or its tags: put in what is missing of what is kept,
 * and take out the rest, to `gone`, or closed when that is NULL.
 */
int file_probes_bring_sharing(struct file_probes *fp, struct file_member *m, enum sharing sharing,
			      enum probes_kept kept, struct held_links *gone);
int file_probes_bring_tags(struct file_probes *fp, struct file_member *m, enum probes_kept kept,
			   struct held_links *gone);
int file_probes_bring_sampler(struct file_probes *fp, struct file_member *m, enum probes_kept kept,
			      struct held_links *gone);
int file_probes_bring_tap(struct file_probes *fp, struct file_member *m, enum probes_kept kept,
			  struct held_links *gone);
/* Tap its allocator in a member, from now on as often as it is brought; file_probes_tap_news() says what came of it. */
int file_probes_tap(struct file_probes *fp, struct file_member *m, enum probes_kept kept);
void file_probes_untap(struct file_member *m);
bool file_member_is_tapped(const struct file_member *m);
/* As held_links_set_tap(). -ENOENT: it has none. */
int file_member_set_tap(const struct file_member *m, uint64_t rate_bytes, struct tap_lost *ret);
const struct tap_news *file_probes_tap_news(const struct file_probes *fp);
/* Every member with that sharing, what it keeps; who has just ended is left out. */
int file_probes_bring_all(struct file_probes *fp, enum sharing sharing);

/* Hits of a process in a second, of late. */
struct probes_activity {
	double (*hits_per_s)(void *ctx, pid_t pid);
	void *ctx;
};
/* Of the members that share an event, brings one to the front if that is worth it: see plan_front().
 * -ESRCH: it has ended; otherwise everything is as it was after an error, too. */
int file_probes_order(struct file_probes *fp, const struct probes_activity *a, double hit_ns);

/* One sharing of one member; one of all. */
void file_probes_stop_member(struct file_member *m, enum sharing sharing);
void file_probes_stop_sharing(struct file_probes *fp, enum sharing sharing);
/* What is on allocations, of all members and sharings, to `gone`. Samplers stay, whose allocations and frees are one. */
void file_probes_gather_allocs(struct file_probes *fp, struct held_links *gone);

/* See probes_clean_children(). -ENOMEM or another -errno. */
int file_probes_clean_children(const struct file_probes *fp, const struct file_member *m);

#endif
