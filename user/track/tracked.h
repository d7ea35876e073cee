/* SPDX-License-Identifier: MIT */
/*
 * tracked.h - the running tracked processes, and what is known of each: its executable mappings
 * (which the engine uses for unwinding), the files that they hold, its tags, the names of its label
 * keys.
 *
 * Internal to tracker.c, which decides when a process is read, and probes its files. What must
 * outlive the process goes to its instance (instances.h).
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
#include "track/probes.h"
#include "track/process_tags.h"
#include "track/tap_rate.h"

struct engine;
struct instances;
struct jit_code;
struct reclaim;
struct track_file;
struct track_files;
struct track_policy;

/* A file that was mapped lately. */
struct track_news {
	uint64_t ino, time_ns;
};

struct tracked_process {
	pid_t pid;
	pid_t live_tid;
	uint32_t generation; /* of the image read last */
	bool is_dirty; /* its mappings must be read again */
	bool has_new_sites; /* sites were probed in its image, or in the next one */
	uint64_t held_until_ns; /* it does not run before then; 0: it runs */
	const struct track_file *sampler; /* the file whose sampler is read; NULL: none */
	bool is_sampled; /* that sampler has reported a sample, or the process is tapped */
	/* TAP_OF_OTHER: it is in the memory of another process, which is tapped */
	enum { TAP_NOT_TRIED, TAP_IN, TAP_REFUSED, TAP_OF_OTHER } tap;
	uint32_t tap_generation; /* the image to which `tap` applies */
	uint64_t tap_due_ns; /* do not tap before then; 0: now */
	uint32_t tap_tries; /* that did not succeed */
	/* How many mappings have code of an allocator: now, and when they were tapped. */
	uint32_t allocator_maps_cnt, tapped_maps_cnt;
	bool is_child; /* it was forked while its parent was tracked */
	struct tap_unit tap_unit;
	uint64_t tap_cpu_ns; /* its CPU time at the last look at its rate */
	bool has_allocator; /* an allocator was mapped when its mappings were last read */
	uint64_t refreshed_ns;
	struct read_cost read_cost; /* cost of reading its files */
	uint32_t uid;
	bool is_waiting; /* some of its files are being read */
	bool has_busy_files; /* some could not be opened yet */
	bool has_unread_files; /* reading some did not finish; tried again later */
	bool has_gone_files; /* some were gone: it has unmapped them meanwhile, or ended */
	struct {
		uint32_t cnt; /* files that cannot be opened now, or never */
		char path[160]; /* of the first */
		int err; /* likewise: -EACCES, -EAGAIN, -ETIMEDOUT; see track_files_get() */
	} closed;
	bool has_costly_files; /* reading all would cost too much; said once */
	struct process_tags tags;
	VEC(struct track_file *) mapped; /* each is held once */
	struct jit_areas jit; /* areas with code made at run time */
	struct jit_code *jit_code; /* that code; NULL: none so far */
	struct jit_code *jit_parent; /* code of the process that forked it; NULL: none */
	bool may_have_leftovers; /* it ran before it was tracked, and was not checked yet */
	VEC(struct leftovers) leftovers; /* found when its mappings were last read */
	/* Kept by the tracker. */
	uint32_t cleans_left; /* how often forked children must still be cleaned */
	uint64_t cleaned_ns; /* when that was last done */
	bool has_seen_hits;
	uint64_t hits_seen; /* its hits when sharers of events were last put in order */
	double hits_per_s; /* in the interval before that */
	uint32_t hits_idx; /* its hit counter; tracked children share their parent's */
	struct ht_hits hits_before; /* counts of that counter from before it was tracked */
	uint64_t followed_ns; /* when tracking began */
	uint64_t recorded_ns; /* when it was first probed; 0: from its begin on */
	/* Kept by late_files.c: files mapped since the last reading that knew all of them, and when that was over */
	VEC(struct track_news) news;
	uint32_t news_next;
	uint64_t whole_ns; /* 0: there was none yet */
	uint64_t cpu_before_ns; /* CPU time used before that */
};

struct tracked {
	struct engine *engine;
	struct track_files *files;
	struct instances *instances;
	struct reclaim *reclaim;
	const struct track_policy *policy;
	VEC(struct tracked_process) list; /* in no order */
	struct hmap idx; /* pid -> index in it */
	uint64_t added_cnt, deleted_cnt; /* since the start */
	uint64_t read_cnt; /* number of readings of mappings */
	bool is_closed_said;
	bool has_new_files; /* some awaited files have been read */
	double waited_ns; /* recent time spent waiting for files */
	uint64_t waited_since_ns;
	size_t failed_cnt; /* files that could not be entered */
	int failed_err; /* error of the first; 0: none */
};

/* All arguments must outlive it. reclaim is asked when a file has lost its last process. */
void tracked_init(struct tracked *f, struct engine *engine, struct track_files *files,
		  struct instances *instances, struct reclaim *reclaim,
		  const struct track_policy *policy);
/* Leaves the engine's data on the processes, and the files that they hold, as they are. */
void tracked_release(struct tracked *f);

/* NULL: not tracked. Valid until the next add or delete. */
struct tracked_process *tracked_find(const struct tracked *f, pid_t pid);
/* The process that was read longest ago; NULL: no processes. */
struct tracked_process *tracked_oldest(const struct tracked *f);
/* Has the process ended, though no event said so? */
bool tracked_has_ended(pid_t pid);
/* Add an entry; the caller sets up the target. -EEXIST, -ENOMEM. */
int tracked_add(struct tracked *f, pid_t pid, uint32_t generation, struct tracked_process **ret);
/* The last process moves to its place. */
void tracked_delete(struct tracked *f, struct tracked_process *p);

/*
 * Bring the process up to date: mappings first, so that the first sample can be unwound. Afterwards
 * p->mapped has exactly the files that it maps now. -ESRCH, -ENOENT: it has ended; -ENOMEM.
 */
int tracked_refresh(struct tracked *f, struct tracked_process *p);
/* Is its image still the one read last? */
bool tracked_is_current(const struct tracked *f, const struct tracked_process *p);
/* Must it be refreshed because memory was reused for other code? May be called at any rate. */
bool tracked_look_at_jit(struct tracked_process *p);
/* Its leftovers have been dealt with. */
void tracked_forget_leftovers(struct tracked_process *p);
/* Subtract the hits that were counted before it was tracked. */
void tracked_hits_since(const struct tracked_process *p, struct ht_hits *hits);
/* Update hits_per_s of each process; passed_ns: time since the last call. */
void tracked_read_hits(struct tracked *f, uint64_t passed_ns);
double tracked_hits_per_s(void *f, pid_t pid); /* for struct probes_activity */
/* Read its own counters, and new names of label keys, into its instance. */
void tracked_read_counters(struct tracked *f, struct tracked_process *p);

#endif
