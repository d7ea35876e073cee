/* SPDX-License-Identifier: MIT */
/* saver_priv.h - the parts of saver.c: ended processes, running ones, and several profiles of one snapshot. */
#ifndef HT_SAVED_SAVER_PRIV_H
#define HT_SAVED_SAVER_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "saved/job.h"
#include "saved/name.h"
#include "saved/rules.h"

struct engine;
struct ht_event;
struct profile_request;
struct profile_source;
struct saved_batch;
struct saved_cgroup;
struct saved_credit;
struct saved_ended;
struct saved_store;
struct saved_watch;
struct snapshot;
struct tracker;

/*
 * ended.c: ended processes (and images, after an exec) that wait for their last profile.
 *
 * Their samples are still in the live map and are kept there (tracker_pin_image()) from when a job is added until it is
 * let go. Jobs that cannot wait any longer are let go here, and counted.
 */

/* -ENOMEM. */
int saved_ended_new(struct saved_ended **ret);
/* NULL is fine. Samples stay held: the tracker ends as well. */
void saved_ended_free(struct saved_ended *ke);

/* When there are too many jobs, the one that is worth least is let go. */
void saved_ended_add(struct saved_ended *ke, struct tracker *t, const struct saved_job *job);
size_t saved_ended_cnt(const struct saved_ended *ke);
/* Valid until the next change. */
const struct saved_job *saved_ended_at(const struct saved_ended *ke, size_t i);
/* Remove the job of this image, if there is one, from those that wait; its samples are still held. */
void saved_ended_take(struct saved_ended *ke, const struct saved_job *job);
/* Let go jobs that have waited too long for CPU time that is not there, so that their samples do not fill the live
 * map. now_ns: CLOCK_MONOTONIC. */
void saved_ended_skip_late(struct saved_ended *ke, struct tracker *t, struct saved_credit *credit,
			   uint64_t now_ns);

/* Number of jobs of which no profile will be made. */
uint64_t saved_ended_skipped_cnt(const struct saved_ended *ke);

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
	struct saved_name name; /* comm, pid, start */
	uint32_t generation;
	struct saved_cgroup *cgroup; /* NULL: not known */
	struct saved_usage usage;
	bool is_sampled; /* BPF has sums for it */
	bool has_inuse; /* frees are watched, so the sums mean something. Set by the caller */
	bool is_followed; /* while syncing */
	struct saved_want peak, limit;
};

/* limit_share: as saved_cgroups_new(). -ENOMEM. */
int saved_watch_new(double limit_share, struct saved_watch **ret);
void saved_watch_set_limit(struct saved_watch *kw, double limit_share);
/* NULL is fine. */
void saved_watch_free(struct saved_watch *kw);

/* Pointers are valid until the next add or del. NULL: it is not watched. */
struct watched *saved_watch_find(const struct saved_watch *kw, pid_t pid);
size_t saved_watch_cnt(const struct saved_watch *kw);
/* Del moves the last one to the free place. */
struct watched *saved_watch_at(const struct saved_watch *kw, size_t i);

/* comm: used when /proc does not tell it any more, because the process is ending; need not end in \0. -ESRCH: the
 * tracker does not follow it; -ENOMEM. */
int saved_watch_add(struct saved_watch *kw, const struct tracker *t, pid_t pid, const char *comm,
		    size_t comm_bytes);
void saved_watch_del(struct saved_watch *kw, struct watched *w);

/* Begin another program's image, which has no peak yet. event: HT_EVENT_EXEC. */
void watched_begin_image(struct watched *w, const struct ht_event *event);

/* Read what all of them hold, and set what is wanted. Call a few times a second. rate_bytes: between samples. */
void saved_watch_tick(struct saved_watch *kw, struct engine *e, uint64_t rate_bytes,
		      uint64_t now_ns);

/*
 * batch.c: the jobs for which one child process makes profiles, all from one snapshot.
 *
 * Set a batch, open its files, start it; when worker.h reports its end, read the results, and clear it. One at a
 * time.
 */

#define KEEP_BATCH_CAP 16

/* Result of one job, written by the child. */
struct saved_result {
	uint32_t job_idx;
	int32_t make_err, write_err; /* -errno: of making; of writing to the store's folder */
	double inuse_bytes; /* in the profile; < 0: not known */
};

/* The store must outlive the batch; only the child writes to it. -ENOMEM. */
int saved_batch_new(const struct saved_store *store, struct saved_batch **ret);
/* Ends the child. NULL is fine. */
void saved_batch_free(struct saved_batch *b);

/* Takes the first KEEP_BATCH_CAP jobs. */
void saved_batch_set(struct saved_batch *b, const struct saved_job *jobs, size_t cnt);
size_t saved_batch_cnt(const struct saved_batch *b);
/* A caller that takes over the job's fd sets it to -1. */
struct saved_job *saved_batch_at(struct saved_batch *b, size_t i);
/* Open files in memory for the profiles. From here on the jobs have the time epoch_ns, give or take some
 * milliseconds, so that no two have the same. -errno: clear the batch. */
int saved_batch_open_files(struct saved_batch *b, int64_t epoch_ns);
/* Forget the jobs, and close the fds that nobody took over. */
void saved_batch_clear(struct saved_batch *b);

/* moment: when s began, on both clocks. */
int saved_batch_start(struct saved_batch *b, const struct profile_source *src,
		      const struct snapshot *s, const struct profile_request *moment);

/* As in worker.h, while the child is at work. */
bool saved_batch_is_at_work(const struct saved_batch *b);
int saved_batch_fd(const struct saved_batch *b);
bool saved_batch_check(struct saved_batch *b);
bool saved_batch_reap(struct saved_batch *b, uint64_t *ret_cpu_ns);
/* Valid at any time. */
uint64_t saved_batch_reader_since_ns(const struct saved_batch *b);

/* Read result i after the end, in the order in which they came. false: no more; the other jobs were not done. */
bool saved_batch_result(const struct saved_batch *b, size_t i, struct saved_result *ret);

#endif
