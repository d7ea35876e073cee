/* SPDX-License-Identifier: MIT */
/* saver_priv.h - what saver.c is made of: ended processes, running ones, and several profiles of one snapshot. */
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
 * Their samples are still in the live map: they are held back from being forgotten
 * (tracker_hold()) from when a job is added until it is let go. Those that cannot be waited for are
 * let go here, and counted.
 */

/* -ENOMEM. */
int saved_ended_new(struct saved_ended **ret);
/* NULL is fine. What is held stays so: the tracker ends as well. */
void saved_ended_free(struct saved_ended *ke);

/* When there are too many, the one that is worth least gives way. */
void saved_ended_add(struct saved_ended *ke, struct tracker *t, const struct saved_job *job);
size_t saved_ended_cnt(const struct saved_ended *ke);
/* Holds until the next change. */
const struct saved_job *saved_ended_at(const struct saved_ended *ke, size_t i);
/* The job of this image, if there is one, waits no longer; it is still held. */
void saved_ended_take(struct saved_ended *ke, const struct saved_job *job);
/* Lets go those that have waited too long for CPU time that is not there, so that their samples do
 * not fill the live map. now_ns: CLOCK_MONOTONIC. */
void saved_ended_skip_late(struct saved_ended *ke, struct tracker *t, struct saved_credit *credit,
			   uint64_t now_ns);

/* Of which no profile will be made. */
uint64_t saved_ended_skipped_cnt(const struct saved_ended *ke);

/*
 * watch.c: the running processes of which profiles may be saved: what each holds, how near its
 * cgroup is to its limit, and which reasons to keep a profile that gives.
 *
 * This says what there is a reason for. Whether and when it is done is saver.c's.
 */

/* Why a profile is kept of a process that goes on running, and the one that is. */
struct saved_want {
	bool is_wanted;
	struct saved_pace pace;
	double kept_bytes; /* that the saved profile shows */
	bool has_inuse; /* it does show what was held: frees were probed */
	struct saved_name file; /* the saved profile, when pid is not 0 */
};

struct watched {
	struct saved_name name; /* comm, pid, start */
	uint32_t generation;
	struct saved_cgroup *cgroup; /* NULL: not known */
	struct saved_usage usage;
	bool is_sampled; /* BPF has sums of it */
	bool has_inuse; /* its frees are watched: the sums mean something. For the caller to set */
	bool is_followed; /* while syncing */
	struct saved_want peak, limit;
};

/* limit_share: as saved_cgroups_new(). -ENOMEM. */
int saved_watch_new(double limit_share, struct saved_watch **ret);
void saved_watch_set_limit(struct saved_watch *kw, double limit_share);
/* NULL is fine. */
void saved_watch_free(struct saved_watch *kw);

/* Pointers hold until the next add or del. NULL: it is not watched. */
struct watched *saved_watch_find(const struct saved_watch *kw, pid_t pid);
size_t saved_watch_cnt(const struct saved_watch *kw);
/* Del moves the last one to the place of the one that goes. */
struct watched *saved_watch_at(const struct saved_watch *kw, size_t i);

/* comm: for when /proc does not tell it any more, because the process is ending; need not end in
 * \0. -ESRCH: the tracker does not follow it; -ENOMEM. */
int saved_watch_add(struct saved_watch *kw, const struct tracker *t, pid_t pid, const char *comm,
		    size_t comm_bytes);
void saved_watch_del(struct saved_watch *kw, struct watched *w);

/* It is another program from now on, which has no peak yet. event: HT_EVENT_EXEC. */
void watched_begin_image(struct watched *w, const struct ht_event *event);

/* Reads what all of them hold, and says what is wanted. A few times a second. rate_bytes: between
 * samples. */
void saved_watch_tick(struct saved_watch *kw, struct engine *e, uint64_t rate_bytes,
		      uint64_t now_ns);

/*
 * batch.c: the jobs that one child process makes profiles for, all of them from one snapshot.
 *
 * A batch is set, its files are opened, it is started; when worker.h tells its end, the results are
 * read, and it is cleared. One at a time.
 */

#define KEEP_BATCH_CAP 16

/* Of one job, from the child. */
struct saved_result {
	uint32_t job_idx;
	int32_t make_err, write_err; /* -errno: of the profile; of its way to the store's folder */
	double inuse_bytes; /* in the profile; < 0: not known */
};

/* The store, which must outlive the batch, is only written to, by the child. -ENOMEM. */
int saved_batch_new(const struct saved_store *store, struct saved_batch **ret);
/* Ends the child. NULL is fine. */
void saved_batch_free(struct saved_batch *b);

/* The first KEEP_BATCH_CAP are taken. */
void saved_batch_set(struct saved_batch *b, const struct saved_job *jobs, size_t cnt);
size_t saved_batch_cnt(const struct saved_batch *b);
/* Whoever takes its fd over sets it to -1. */
struct saved_job *saved_batch_at(struct saved_batch *b, size_t i);
/* For the profiles, in memory; from here on the jobs have the time epoch_ns, give or take some
 * milliseconds, so that no two have the same. -errno: to be cleared. */
int saved_batch_open_files(struct saved_batch *b, int64_t epoch_ns);
/* Forgets the jobs, and closes what nobody took over. */
void saved_batch_clear(struct saved_batch *b);

/* moment: when s was begun, on both clocks. */
int saved_batch_start(struct saved_batch *b, const struct profile_source *src,
		      const struct snapshot *s, const struct profile_request *moment);

/* As worker.h says of the child; while it is at work. */
bool saved_batch_is_at_work(const struct saved_batch *b);
int saved_batch_fd(const struct saved_batch *b);
bool saved_batch_check(struct saved_batch *b);
bool saved_batch_reap(struct saved_batch *b, uint64_t *ret_cpu_ns);
/* At any time. */
uint64_t saved_batch_reader_since_ns(const struct saved_batch *b);

/* After the end, in the order in which they came; false: there are no more, the rest was not made. */
bool saved_batch_result(const struct saved_batch *b, size_t i, struct saved_result *ret);

#endif
