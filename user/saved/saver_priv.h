/* SPDX-License-Identifier: MIT */
/* saver_priv.h - the parts of saver.c: profiles that are to be made, running processes, and several profiles of one
 * snapshot. */
#ifndef HT_SAVED_SAVER_PRIV_H
#define HT_SAVED_SAVER_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hmap.h"
#include "base/log_limit.h"
#include "base/vec.h"
#include "budget/governor.h"
#include "proc/cgroup_memory.h"
#include "saved/name.h"
#include "saved/rules.h"
#include "serve/worker.h"

struct engine;
struct ht_event;
struct ht_image;
struct profile_request;
struct profile_source;
struct saved_cgroup;
struct saved_store;
struct snapshot;
struct tracker;

/*
 * jobs.c: profiles that are to be saved, and those of them that wait, because their processes (or images, after an
 * exec) have ended.
 *
 * Their samples are still in the live map and are kept there (tracker_pin_image()) from when a job is added until it is
 * let go. Jobs that cannot wait any longer are let go here, and counted.
 */

/* What is known of a process's memory, for the notes of its profiles. */
struct saved_usage {
	double inuse_bytes, peak_bytes;
	uint64_t peak_ns; /* CLOCK_MONOTONIC */
	struct cgroup_room_reading cgroup;
};

/* Fill in BPF's sums of an image; `cgroup` stays as it is. */
void saved_usage_set_sums(struct saved_usage *u, const struct ht_image *image);

/* Which image of which process, why, and what was known of its memory when the reason arose. */
struct saved_job {
	struct saved_name name;
	uint32_t generation;
	struct saved_usage usage;
	struct governor_record budget; /* as of that time, too */
	uint64_t queued_ns; /* CLOCK_MONOTONIC: only for jobs that wait */
	int fd; /* in memory, while a child makes it; -1: none */
};

enum saved_class saved_job_class(const struct saved_job *j);
/* True if in use is known: frees are watched, or nothing says that they are not. */
bool saved_job_has_inuse(const struct saved_job *j);
/* True for a process or an image that has ended: this is the last chance to save a profile of it. */
bool saved_job_is_last(const struct saved_job *j);
/* For qsort(): by class, in each the largest in use first. */
int saved_job_by_worth(const void *a, const void *b);

struct saved_ended {
	VEC(struct saved_job) jobs;
	uint64_t skipped_cnt; /* jobs of which no profile will be made */
	struct log_limit log;
};

void saved_ended_init(struct saved_ended *ke);
/* When there are too many jobs, the one that is worth least is let go. */
void saved_ended_add(struct saved_ended *ke, struct tracker *t, const struct saved_job *job);
/* Remove the job of this image, if there is one, from those that wait; its samples are still held. */
void saved_ended_take(struct saved_ended *ke, const struct saved_job *job);
/* Let go jobs that have waited too long, so that their samples do not fill the live map. */
void saved_ended_skip_late(struct saved_ended *ke, struct tracker *t, uint64_t now_ns);

/*
 * watch.c: the running processes of which profiles may be saved: what each holds, how near its cgroup is to its
 * limit, and which reasons that gives to save a profile.
 *
 * This part reports the reasons. saver.c decides whether and when to act.
 */

/* Why a profile of a running process is wanted, and the saved one. */
struct saved_want {
	bool is_wanted;
	struct saved_pace pace;
	double kept_bytes; /* shown by the saved profile */
	bool has_inuse; /* the saved profile shows what was held: frees were probed */
	struct saved_name file; /* the saved profile, when pid is not 0 */
};

struct watched {
	struct saved_name name; /* comm, pid */
	uint32_t generation;
	struct saved_cgroup *cgroup; /* NULL: not known */
	struct saved_usage usage;
	bool is_sampled; /* BPF has sums for it */
	bool has_inuse; /* frees are watched, so the sums mean something. Set by the caller */
	bool is_followed; /* while syncing */
	struct saved_want peak, limit;
};

struct saved_watch {
	VEC(struct watched) list;
	struct hmap idx; /* pid -> index in list */
	double limit_share; /* part of the limit from which on a cgroup counts as near, as in 0.9 */
	struct cgroup_mount mount;
	bool has_mount; /* false: no memory cgroups are mounted, so no process has one */
	VEC(struct saved_cgroup *) cgroups;
	uint64_t refreshed_ns;
};

void saved_watch_init(struct saved_watch *kw, double limit_share);
void saved_watch_release(struct saved_watch *kw);

/* Pointers are valid until the next add or del. NULL: it is not watched. */
struct watched *saved_watch_find(const struct saved_watch *kw, pid_t pid);
/* comm: used when /proc does not tell it any more, because the process is ending; need not end in \0. -ESRCH: the
 * tracker does not follow it; -ENOMEM. */
int saved_watch_add(struct saved_watch *kw, const struct tracker *t, pid_t pid, const char *comm,
		    size_t comm_bytes);
/* Moves the last one to the free place. */
void saved_watch_del(struct saved_watch *kw, struct watched *w);

/* Begin another program's image, which has no peak yet. event: HT_EVENT_EXEC. */
void watched_begin_image(struct watched *w, const struct ht_event *event);

/* Read what all of them hold, and set what is wanted. Call a few times a second. rate_bytes: between samples. */
void saved_watch_tick(struct saved_watch *kw, struct engine *e, uint64_t rate_bytes,
		      uint64_t now_ns);

/*
 * batch.c: the jobs for which one child process makes profiles, all from one snapshot.
 *
 * Set a batch, open its files, start it; when its worker has ended, read the results, and clear it. One at a time.
 */

#define KEEP_BATCH_CAP 16

struct saved_batch {
	const struct saved_store *store; /* only the child writes to it */
	struct saved_job jobs[KEEP_BATCH_CAP];
	size_t job_cnt;
	int result_fd; /* -1: none */
	int64_t last_epoch_ms; /* of any job so far */
	struct worker worker;
};

/* Result of one job, written by the child. */
struct saved_result {
	uint32_t job_idx;
	int32_t make_err, write_err; /* -errno: of making; of writing to the store's folder */
	double inuse_bytes; /* in the profile; < 0: not known */
};

/* Takes the first KEEP_BATCH_CAP jobs. A caller that takes over a job's fd sets it to -1. */
void saved_batch_set(struct saved_batch *b, const struct saved_job *jobs, size_t cnt);
/* Open files in memory for the profiles. From here on the jobs have the time epoch_ns, give or take some
 * milliseconds, so that no two have the same. -errno: clear the batch. */
int saved_batch_open_files(struct saved_batch *b, int64_t epoch_ns);
/* Forget the jobs, and close the fds that nobody took over. */
void saved_batch_clear(struct saved_batch *b);

/* moment: when s began, on both clocks. */
int saved_batch_start(struct saved_batch *b, const struct profile_source *src,
		      const struct snapshot *s, const struct profile_request *moment);

/* Read result i after the end, in the order in which they came. false: no more; the other jobs were not done. */
bool saved_batch_result(const struct saved_batch *b, size_t i, struct saved_result *ret);

#endif
