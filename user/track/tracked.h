/* SPDX-License-Identifier: MIT */
/*
 * tracked.h - the tracked processes that run, and what is known of each: its executable mappings, which
 * the engine has for unwinding, the files that it holds by them, its tags and the names of its label keys.
 *
 * Internal to tracker.c, which says when a process is read, and probes its files. What is to be known
 * after its end goes to its instance (instances.h).
 */
#ifndef HT_TRACK_TRACKED_H
#define HT_TRACK_TRACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hmap.h"
#include "base/vec.h"
#include "heaptap/abi.h"
#include "track/files.h"
#include "track/jit_areas.h"
#include "track/leftovers.h"
#include "track/process_tags.h"
#include "track/tap_rate.h"

struct engine;
struct instances;
struct jit_code;
struct reclaim;
struct track_file;
struct track_files;

struct tracked_process {
	pid_t pid;
	pid_t live_tid;
	uint32_t generation; /* of the image that was last read */
	bool is_dirty; /* mappings to be read again */
	bool has_new_sites; /* its image, or the one after it, has come to be probed in places */
	uint64_t held_until_ns; /* nothing of it runs before; 0: it runs */
	const struct track_file *sampler; /* of its files, whose samples are read; NULL: none */
	bool is_sampled; /* that one has told of one, or it is tapped */
	enum { TAP_NOT_TRIED, TAP_IN, TAP_REFUSED } tap;
	uint32_t tap_generation; /* of which image that is so */
	uint64_t tap_due_ns; /* it is not to be tapped before; 0: now */
	bool is_child; /* it was forked while its parent was tracked */
	struct tap_unit tap_unit;
	uint64_t tap_cpu_ns; /* its CPU time when that was last looked at */
	bool has_allocator; /* among the files that were mapped when they were last read */
	uint64_t refreshed_ns;
	struct read_cost read_cost; /* of its files */
	uint32_t uid;
	bool is_waiting; /* files of it are being read */
	bool has_busy_files; /* that could not be opened yet */
	bool has_unread_files; /* whose reading did not come to an end: tried again later */
	bool has_costly_files; /* more than were read: said once */
	struct process_tags tags;
	VEC(struct track_file *) mapped; /* each is held once */
	struct jit_areas jit; /* where it has code made at run time */
	struct jit_code *jit_code; /* the code there; NULL: none so far */
	struct jit_code *jit_parent; /* of the process that forked it; NULL: none */
	bool may_have_leftovers; /* it ran before it was tracked, and was not looked at yet */
	VEC(struct leftovers) leftovers; /* that were found when its mappings were last read */
	/* What the tracker keeps of it. */
	uint32_t cleans_left; /* times that forked children are still to be cleaned */
	uint64_t cleaned_ns; /* when it was last done */
	bool has_seen_hits;
	uint64_t hits_seen; /* when the sharers of events were last put in order */
	double hits_per_s; /* before that */
	uint32_t hits_idx; /* where its hits are counted; tracked children share their parent's */
	struct ht_hits hits_before; /* counted there before it */
	uint64_t followed_ns; /* since when */
	uint64_t cpu_before_ns; /* CPU time that it had used by then */
};

struct tracked {
	struct engine *engine;
	struct track_files *files;
	struct instances *instances;
	struct reclaim *reclaim;
	VEC(struct tracked_process) list; /* in no order */
	struct hmap idx; /* pid -> index in it */
	uint64_t added_cnt, deleted_cnt; /* ever */
	uint64_t read_cnt; /* how often mappings were read */
	bool is_patient; /* see tracker_options */
	bool has_new_files; /* there are some that were waited for */
	double waited_ns; /* for files, lately */
	uint64_t waited_since_ns;
	size_t failed_cnt; /* files that could not be entered */
	int failed_err; /* why the first of them could not; 0: none */
};

/* All that is referred to must outlive it. reclaim is asked when a file has lost its last process. */
void tracked_init(struct tracked *f, struct engine *engine, struct track_files *files,
		  struct instances *instances, struct reclaim *reclaim);
/* What the engine knows of the processes, and the files that they hold, are left as they are. */
void tracked_release(struct tracked *f);

/* NULL: not tracked. Good until the next add or delete. */
struct tracked_process *tracked_find(const struct tracked *f, pid_t pid);
/* Which was read longest ago; NULL: there is none. */
struct tracked_process *tracked_oldest(const struct tracked *f);
/* Has the process, though nobody has told? */
bool tracked_has_ended(pid_t pid);
/* An entry; its target is the caller's business. -EEXIST, -ENOMEM. */
int tracked_add(struct tracked *f, pid_t pid, uint32_t generation, struct tracked_process **ret);
/* The last process takes its place. */
void tracked_delete(struct tracked *f, struct tracked_process *p);

/*
 * Bring it up to date: mappings first, so that the first sample can be unwound. The files that it maps
 * now, and no others, are in p->mapped. -ESRCH, -ENOENT: it has ended; -ENOMEM.
 */
int tracked_refresh(struct tracked *f, struct tracked_process *p);
/* Is it still the image that was read last? */
bool tracked_is_current(const struct tracked *f, const struct tracked_process *p);
/* Is it to be brought up to date, because memory was given to other code? Asked as often as you like. */
bool tracked_look_at_jit(struct tracked_process *p);
/* The leftovers have been dealt with. */
void tracked_forget_leftovers(struct tracked_process *p);
/* Of what was counted in its place, what came since it is tracked. */
void tracked_hits_since(const struct tracked_process *p, struct ht_hits *hits);
/* How often each has hit probes of late, in the time that has passed since the last call. */
void tracked_read_hits(struct tracked *f, uint64_t passed_ns);
double tracked_hits_per_s(void *f, pid_t pid); /* of struct probes_activity */
/* What it counts itself, and names of label keys that it published meanwhile, to its instance. */
void tracked_read_counters(struct tracked *f, struct tracked_process *p);

#endif
