/* SPDX-License-Identifier: MIT */
/*
 * tracker_priv.h - the inside of a tracker. tracker.c decides when a process is read, and has its files probed;
 * tracked.c keeps what is known of a process, and reads it; tracker_ask.c answers.
 *
 * What must outlive a process goes to its instance (instances.h).
 */
#ifndef HT_TRACK_TRACKER_PRIV_H
#define HT_TRACK_TRACKER_PRIV_H

#include "base/std.h"
#include "base/hmap.h"
#include "base/log.h"
#include "base/vec.h"
#include "heaptap/abi.h"
#include "profile/recording.h"
#include "track/files.h"
#include "track/instances.h"
#include "track/policy.h"
#include "track/probes.h"
#include "track/tracker.h"

struct engine;
struct guardian;
struct jit_code;
struct loaders;
struct process_events_map;
struct reclaim;

struct jit_area {
	uint64_t start_addr, end_addr;
};

struct jit_areas {
	VEC(struct jit_area) area; /* in order, not touching one another */
};

/* All zero: the process was not looked at yet. */
struct process_tags {
	VEC(uint64_t) desc_addrs; /* descriptors of heaptap/scope.h */
	VEC(struct ht_tag_source) otel; /* sources of OpenTelemetry's tags */
	uint32_t id_keys; /* tag_keys_ids() of the keys read last */
	bool has_problem; /* something that was read cannot be right... */
	uint32_t problem_tries; /* ... this many times in a row */
	bool is_pending; /* the loader is still working: look again soon */
	uint64_t published_ns; /* when the keys read last were published */
	/* When to look for names of label keys again. Where only records of heaptap/scope.h could have such labels,
	 * which is rare, the intervals get longer and longer. */
	uint64_t keys_due_ns, keys_wait_ns;
};

/* Processes sampled at one rate: one, or a family that counts its hits together. */
struct tap_unit {
	struct recording_limit limit; /* of its cost */
	uint64_t rate_bytes, calm_ns;
	/* As of the last look at the rate. */
	uint64_t checked_ns;
	struct ht_hits hits;
};

/* A file that was mapped lately. */
struct track_news {
	uint64_t ino, time_ns;
};

struct tracked_process {
	pid_t pid;
	pid_t live_tid;
	uint32_t generation; /* of the image read last */
	bool is_dirty; /* its mappings must be read again */
	uint64_t plain_due_ns; /* ... then, for files that nothing is to be probed in; 0: there are none */
	bool is_emulated; /* see process_is_emulated(): it must have no probe */
	bool has_new_sites; /* sites were probed in its image, or in the next one */
	uint64_t held_until_ns; /* it does not run before then; 0: it runs */
	const struct track_file *sampler; /* the file whose sampler is read; NULL: none */
	bool is_sampled; /* that sampler has reported a sample, or the process is tapped */
	/* TAP_OF_OTHER: it is in the memory of another process, which is tapped */
	enum { TAP_NOT_TRIED, TAP_IN, TAP_REFUSED, TAP_OF_OTHER } tap;
	uint32_t tap_generation; /* the image to which `tap` applies */
	uint64_t tap_due_ns; /* do not tap before then; 0: now */
	uint32_t tap_tries; /* that did not succeed */
	bool is_tap_requested; /* with policy.taps_on_request: do not probe it any more */
	/* How many mappings have code of an allocator: now, and when they were tapped. */
	uint32_t allocator_maps_cnt, tapped_maps_cnt;
	bool is_child; /* it was forked while its parent was tracked */
	struct tap_unit tap_unit;
	uint64_t tap_cpu_ns; /* its CPU time at the last look at its rate */
	bool has_allocator; /* an allocator was mapped when its mappings were last read */
	uint64_t refreshed_ns;
	uint32_t image_generation; /* of the image that /proc was asked about... */
	uint64_t image_ns; /* ... last, at this time; 0: never */
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
	VEC(struct ht_mapping) set; /* its mappings, as BPF has them or finds them by itself */
	struct jit_areas jit; /* areas with code made at run time */
	struct jit_code *jit_code; /* that code; NULL: none so far */
	struct jit_code *jit_parent; /* code of the process that forked it; NULL: none */
	bool may_have_leftovers; /* it ran before it was tracked, and was not checked yet */
	VEC(struct leftovers) leftovers; /* found when its mappings were last read */
	/* Kept by tracker.c. */
	uint32_t cleans_left; /* how often forked children must still be cleaned */
	uint64_t cleaned_ns; /* when that was last done... */
	uint64_t clean_wait_ns; /* ... and how long to wait after it */
	bool has_seen_hits;
	uint64_t hits_seen; /* its hits when sharers of events were last put in order */
	double hits_per_s; /* in the interval before that */
	uint32_t hits_idx; /* its hit counter; tracked children share their parent's */
	struct ht_hits hits_before; /* counts of that counter from before it was tracked */
	uint64_t cpu_before_ns; /* CPU time used before that */
	uint64_t followed_ns; /* when tracking began */
	uint64_t recorded_ns; /* when it was first probed; 0: from its begin on */
	uint64_t maps_ns; /* when its mappings were read last: the reading begins */
	/* Kept by late_files.c: files mapped since the last reading that knew all of them, when that was over, and
	 * when it began */
	VEC(struct track_news) news;
	uint32_t news_next;
	uint64_t whole_ns; /* 0: there was none yet */
	uint64_t whole_maps_ns;
};

struct tracker {
	struct engine *engine;
	struct guardian *guardian; /* attaches the probes */
	struct track_files *files;
	const struct track_policy *policy;
	struct probes *probes;
	struct instances instances;
	struct reclaim *reclaim; /* asked when a file has lost its last process */
	struct loaders *loaders; /* NULL: no process is held */
	struct hmap pinned; /* struct pinned_key of images whose samples are still wanted */
	VEC(struct tracked_process) list; /* in no order */
	struct hmap idx; /* pid -> index in it */
	uint64_t added_cnt, deleted_cnt; /* since the start */
	uint32_t next_generation;
	uint64_t ordered_ns; /* when the sharers of events were last put in order */
	bool is_stopped;
	size_t next_idx; /* index of the process that is first in the next turn */
	uint64_t lost_cnt, lost_checked_ns; /* events that did not fit into the ring */
	/* Kept by tracked.c. */
	uint64_t read_cnt; /* number of readings of mappings */
	bool is_closed_logged;
	bool has_new_files; /* some awaited files have been read */
	double waited_ns; /* recent time spent waiting for files */
	uint64_t waited_since_ns;
	size_t failed_cnt; /* files that could not be entered */
	int failed_err; /* error of the first; 0: none */
	/* Kept by taps.c. */
	uint64_t taps_quiet_until_ns; /* no process is tapped before */
	bool are_taps_requested; /* some process is, or was, to be tapped on request */
	bool is_requesting; /* somebody waits for a tap: try again at once */
	struct log_limit tap_log; /* with policy.follow: a build has hundreds of children */
	struct tap_unit family; /* with policy.follow: all processes, which count hits together */
};

/* pid 0: any process, where they share their probes. */
struct tracked_process *tracker_find(const struct tracker *t, pid_t pid);

/*
 * tracked.c: the running tracked processes, and what is known of each: its executable mappings
 * (which the engine uses for unwinding), the files that they hold, its tags, the names of its label keys.
 */

/* Leaves the engine's data on the processes, and the files that they hold, as they are. */
void tracked_release(struct tracker *t);
/* NULL: not tracked. Valid until the next add or delete. */
struct tracked_process *tracked_find(const struct tracker *t, pid_t pid);
/* Add an entry; the caller sets up the target. -EEXIST, -ENOMEM. */
int tracked_add(struct tracker *t, pid_t pid, uint32_t generation, struct tracked_process **ret);
/* The last process moves to its place. */
void tracked_delete(struct tracker *t, struct tracked_process *p);

/*
 * Bring the process up to date: mappings first, so that the first sample can be unwound; and remove leftovers.
 * Afterwards p->mapped has exactly the files that it maps now. -ESRCH, -ENOENT: it has ended; -ENOMEM.
 */
int tracked_refresh(struct tracker *t, struct tracked_process *p);
/*
 * Has it mapped something that need not be read now? The file is known, nothing is to be probed in it, and it is where it was
 * when the mappings were read last, or where nothing was: then BPF finds it by itself, and it is read soon. Or it is a tap.
 */
bool tracked_may_wait(const struct tracker *t, struct tracked_process *p,
		      const struct process_events_map *map);
/* Is its image still the one read last? */
bool tracked_is_current(const struct tracker *t, const struct tracked_process *p);

/*
 * taps.c: which of the tracked processes are tapped, and how often they are sampled.
 *
 * All allocators of a process are tapped, or none: with half of them, frees would appear of
 * allocations that were never seen. Until it is known whether that is possible, its allocators are
 * not probed. Allocators that are mapped later are tapped, too; if one cannot be, its allocations
 * are not seen, and this is logged.
 */

/* Are processes that come from now on tapped, where allowed? Where probes are shared, a request is one for all. */
static inline bool taps_are_for_new(const struct tracker *t)
{
	return tracker_wants_taps(t) && (!t->policy->taps_on_request || t->policy->follow);
}

/* Is this one? */
static inline bool taps_are_for(const struct tracker *t, const struct tracked_process *p)
{
	return tracker_wants_taps(t) && (!t->policy->taps_on_request || p->is_tap_requested);
}

/* For a new process: do not probe it until it is known whether it can be tapped. not_before_ns: when to try. */
int taps_await(const struct tracker *t, struct tracked_process *p, uint64_t not_before_ns);
/* After its mappings were read: tap what is not tapped yet. -ESRCH: it is gone. */
int taps_process(struct tracker *t, struct tracked_process *p);
/* Update its rate, if it is time. */
void taps_adjust(struct tracker *t, struct tracked_process *p);

/*
 * taps.c: how often a tapped process is sampled. A sample costs it some microseconds; little
 * else costs it anything.
 *
 * The rate is TAP_RATE_FINEST while samples cost less than TAP_RATE_SHARE of the process's CPU
 * time, or of one CPU, and no more than is allowed; else it is coarser. At a GiB per second it is
 * one sample per 2 MiB, still five hundred per second; counting unsampled allocations costs about
 * as much there. Each sample has the rate that it was drawn with, so numbers keep their meaning
 * when the rate changes.
 */

#define TAP_RATE_COARSEST (64ULL << 20)
#define TAP_RATE_SHARE 0.005
#define TAP_RATE_OF_ALLOWED 0.7
/* The rate becomes coarser at once, but finer only after this much time with few samples: work
 * comes in bursts, and each would begin with a quarter of a second at the finest rate. */
#define TAP_RATE_CALM_NS 4000000000ULL

struct tap_rate_cost {
	uint64_t spent_ns; /* in the process's probes */
	uint64_t cpu_ns; /* CPU time of the process meanwhile */
	uint64_t time_ns; /* wall time of the interval */
	double allowed_ns; /* allowed by the overhead limit */
};

/* Return the next rate. Set *calm_ns to TAP_RATE_CALM_NS at first, then keep it from call to call. */
uint64_t tap_rate_next(uint64_t rate_bytes, const struct tap_rate_cost *cost, uint64_t *calm_ns);

/*
 * late_files.c: files with an allocator that a recorded process mapped before they were probed. What it allocated
 * through them meanwhile is not seen. Its instance says so (late_file_cnt).
 */

/* It has mapped a file executable. */
void late_files_note_mapped(struct tracked_process *p, uint64_t ino, uint64_t time_ns);
/*
 * Call it after the files of a reading were probed and tapped. Each late file is found once. It is noted in inst, or
 * not if the process did not run meanwhile (inst is NULL).
 */
void late_files_find(struct tracked_process *p, const struct probes *probes,
		     struct track_instance *inst);
/* The file cannot be tapped, so what is allocated through it stays unseen. */
void late_files_note_never(struct track_instance *inst, const struct track_file *file);

/*
 * process_tags.c: the tags of one process: where they are, the names of its label keys, and what its own scope tables
 * could not hold.
 */

/* Call before going through the mappings. Forgets everything but the keys. */
void process_tags_begin(struct process_tags *pt);
/*
 * Tell the engine the tag sources of a mapped file. Errors in them are logged once per file. 0,
 * -ESRCH, or why the process cannot be read.
 */
int process_tags_add_file(struct tracker *t, struct tracked_process *p, uint32_t generation,
			  struct track_file *file, uint64_t bias, const struct proc_maps *maps);
/* Read the names of label keys into the instance, unless they are those read last. Tells the engine which keys not to
 * read. */
int process_tags_read_keys(struct tracker *t, struct tracked_process *p, uint32_t generation,
			   const struct proc_maps *maps);

/*
 * loaders.c: probes the loaders of programs that are held at an exec (guardian/exec_hold.h), where
 * they tell debuggers of new libraries.
 */

/* only_pid: probe only this process's loader; 0: everybody's. -ENOMEM. */
int loaders_new(struct engine *e, struct guardian *g, pid_t only_pid, struct loaders **ret);
/* Detach the probes. NULL is fine. */
void loaders_free(struct loaders *l);

/*
 * A process has executed a program that has not begun to run: probe its loader from now on, if it
 * has one that tells debuggers. -ENOENT: no such loader, or a static program.
 */
int loaders_add(struct loaders *l, struct reader *reader, const struct track_files *files,
		pid_t pid);
/* The file is being forgotten. */
void loaders_forget_file(struct loaders *l, const struct track_file *file);

#endif
