/* SPDX-License-Identifier: MIT */
/*
 * saver_priv.h - the parts of saver.c: names, rules and the store, which are tested alone; the processes that are
 * watched, the profiles that are to be made, and several profiles of one snapshot.
 */
#ifndef HT_RECORD_SAVER_PRIV_H
#define HT_RECORD_SAVER_PRIV_H

#include "base/std.h"
#include "base/clock.h"
#include "base/hmap.h"
#include "base/log.h"
#include "base/vec.h"
#include "proc/cgroup.h"
#include "record/make.h"
#include "record/worker.h"
#include "track/governor.h"

struct err;
struct tracker;

/*
 * saved_store.c: the file name of a saved profile: the time, the process and the reason. Pure.
 *
 * 	TAKEN-PID-COMM-REASON.pb.gz
 * 	20260131T093012.250Z-4711-server-oom.pb.gz
 *
 * Times are UTC: sorted as text, files are in order of time. The target chooses COMM: any byte but letters, digits,
 * '.', '_' or '+' becomes '_', so the name needs no quoting anywhere, has no '/' in it, and its parts can be told
 * apart.
 */

enum saved_reason {
	KEEP_PEAK, /* "peak": the process held more than ever before */
	KEEP_LIMIT, /* "limit": its cgroup came near its limit, or reached it */
	KEEP_OOM, /* "oom": killed because memory ran out */
	KEEP_SIGNAL, /* "signalN": ended by a signal */
	KEEP_EXIT, /* "exitN": ended with this status */
	KEEP_EXEC, /* "exec": became another program */
	KEEP_GONE, /* "gone": not followed any more, or its end was not seen */
};

#define KEEP_COMM_BYTES 17
#define KEEP_NAME_BYTES 128

struct saved_name {
	char comm[KEEP_COMM_BYTES];
	pid_t pid;
	enum saved_reason reason;
	uint32_t code; /* of KEEP_SIGNAL and KEEP_EXIT */
	int64_t taken_epoch_ms;
};

/* How a process ended, from the `other` of HT_EVENT_EXIT. */
void saved_name_set_end(struct saved_name *n, uint32_t exit_status);

/* Reason for people: "out of memory". Returns buf. */
char *saved_reason_words(const struct saved_name *n, char *buf, size_t buf_bytes);
/* "20260131T093012.250Z", without ".250" when ms < 0. Returns buf. */
#define KEEP_TIME_BYTES 32
char *saved_time_text(int64_t epoch_s, int ms, char buf[static KEEP_TIME_BYTES]);

void saved_name_format(const struct saved_name *n, char buf[static KEEP_NAME_BYTES]);
/* -EINVAL: not exactly what saved_name_format() writes, so not our file. */
int saved_name_parse(const char *file, struct saved_name *ret);

/*
 * saver.c: when a profile is saved, and which one is removed when there are too many. Pure.
 *
 * Three rules keep the cost low. A new peak is saved only when in-use has grown by KEEP_GROWTH over the saved one.
 * A process that grows all the time is checked after 1, 2, 4, 8 and then every 10 s (struct saved_pace), so that a
 * burst is caught soon and a leak costs little. And after a batch of profiles there is a rest, some times as long as
 * the CPU time that it took: 5 times before a death by a signal, which nothing else tells of, 10 times before another
 * end or a nearly reached limit, 32 times before a peak, or before another end if there were such ends in that batch. So
 * peaks take at most 3 % of one CPU, and so do programs that come and go all the time.
 */

#define KEEP_GROWTH 0.05
#define KEEP_PACE_MIN_NS (1 * NS_PER_S)
#define KEEP_PACE_MAX_NS (10 * NS_PER_S)
/* A cgroup counts as near its limit again only after its use fell by this share of the limit. */
#define KEEP_LIMIT_SLACK 0.05

/* Has in-use grown enough since the saved profile? Growth of two samples' worth may be noise. */
bool saved_has_grown(double inuse_bytes, double kept_bytes, uint64_t rate_bytes);

/* How often a profile of one process may be taken; all 0 at first. */
struct saved_pace {
	uint64_t taken_ns, interval_ns;
};
bool saved_pace_allows(const struct saved_pace *p, uint64_t now_ns);
void saved_pace_take(struct saved_pace *p, uint64_t now_ns);

/* What a profile tells of, by worth. */
enum saved_class { KEEP_DEATH, KEEP_NEAR_LIMIT, KEEP_ENDED, KEEP_AT_PEAK };
/* The last batch; all 0: there was none. */
struct saved_rest {
	uint64_t took_ns, end_ns;
	bool had_ended; /* some of its profiles were KEEP_ENDED */
};
bool saved_rest_is_over(const struct saved_rest *r, uint64_t now_ns, enum saved_class of);

/* State of a cgroup near its limit: `is_near` is set once it is, until use has fallen again. limit_bytes 0: none. */
struct saved_limit {
	bool is_near;
	uint64_t event_cnt; /* events seen so far */
	bool has_events;
};
/* true: it has just come near, or the kernel has reported new events; share as in 0.9. */
bool saved_limit_reached(struct saved_limit *l, uint64_t used_bytes, uint64_t limit_bytes,
			 uint64_t event_cnt, double share);

/*
 * What is removed first: profiles of processes that ended well, then those that may be evidence, then those of
 * running processes; the oldest first within a kind.
 */
enum saved_rank { KEEP_RANK_ENDED_WELL, KEEP_RANK_ENDED, KEEP_RANK_RUNS };
struct saved_candidate {
	enum saved_rank rank;
	int64_t taken_epoch_ms;
	size_t idx; /* the caller's */
};
/* For qsort(): what is removed first comes first. */
int saved_candidate_order(const void *a, const void *b);

/*
 * saved_store.c: the saved profiles: files in a folder, or in memory, bounded in number and bytes.
 *
 * A profile comes as a file in memory, made by a child process. With a folder the child also writes it there
 * (saved_store_write(): under another name, synced, renamed, the folder synced), so that a file under its own name
 * is complete and survives a crash, and no slow disk holds up the daemon. Files that the folder does not take stay
 * in memory, within KEEP_MEMORY_MAX and, because each is an open descriptor there, KEEP_MEMORY_FILES_MAX.
 *
 * Only files with such names count, are served and are removed; everything else in the folder is left alone.
 * Files of an earlier process count too. The folder belongs to one process at a time.
 */

#define KEEP_MEMORY_MAX ((uint64_t)32 << 20)
#define KEEP_MEMORY_FILES_MAX 64

struct saved_store_stats {
	size_t cnt; /* now, in memory and folder */
	uint64_t bytes;
	size_t memory_cnt;
	uint64_t memory_bytes;
	uint64_t added_cnt;
	uint64_t removed_cnt; /* for want of room */
	uint64_t unwritten_cnt; /* not taken by the folder: disk full, ... */
};

struct kept_file {
	struct saved_name name;
	uint64_t bytes;
	double inuse_bytes; /* < 0: not known, made by an earlier process */
	enum saved_rank rank;
	int fd; /* in memory; -1: in the folder */
};

/* Others only read it. */
struct saved_store {
	int dir_fd; /* -1: memory only */
	size_t file_max;
	uint64_t bytes_max; /* of the folder; without one at most KEEP_MEMORY_MAX */
	VEC(struct kept_file) files; /* the oldest first, in order of arrival */
	struct saved_store_stats stats;
};

/*
 * dir: NULL: memory only; created if missing, its parent is not. It must be writable by us, and by nobody else. -errno,
 * with a sentence for the user in why.
 */
int saved_store_open(const char *dir, size_t file_max, uint64_t bytes_max, struct saved_store **ret,
		     struct err *why);
/* The folder's files stay. */
void saved_store_close(struct saved_store *s);

/* Set other bounds. Files beyond them are removed now. */
void saved_store_set_bounds(struct saved_store *s, size_t file_max, uint64_t bytes_max);

/* Runs in the child: write the file fd to the folder, complete or not at all. -ENOSPC, ... */
int saved_store_write(const struct saved_store *s, const struct saved_name *name, int fd);
/* Handle the file of a child that was killed while writing, and writes no more. Half a file is removed; a complete
 * one counts like those of an earlier process: true. */
bool saved_store_recover(struct saved_store *s, const struct saved_name *name);
/* Takes over fd (in memory); write_err is the result of saved_store_write(). May remove other files. */
int saved_store_add(struct saved_store *s, const struct saved_name *name, int fd, int write_err,
		    double inuse_bytes, enum saved_rank rank);
/* Remove a file of this name that is not needed any more (there is a newer peak). */
void saved_store_drop(struct saved_store *s, const struct saved_name *name);
/* Change the rank of the files of the running process pid, which has ended. */
void saved_store_set_rank(struct saved_store *s, pid_t pid, enum saved_rank rank);
/* Rank of a file whose process has ended. */
enum saved_rank saved_rank_of(const struct saved_name *n);

/* Return a descriptor of the file, which the caller closes. -errno: somebody has removed it. */
int saved_store_fetch(const struct saved_store *s, const struct kept_file *f);

/*
 * saved_jobs.c: profiles that are to be saved, and those of them that wait, because their processes (or images, after an
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

/* Which image of which process, why, and what was known of its memory when the reason arose. */
struct saved_job {
	struct saved_name name;
	uint32_t generation;
	struct saved_usage usage;
	struct governor_record budget; /* as of that time, too */
	uint64_t queued_ns; /* CLOCK_MONOTONIC: only for jobs that wait */
	int fd; /* in memory, while a child makes it; -1: none */
};

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
/* Let go jobs that have waited too long, so that their samples do not fill the live map. */
void saved_ended_skip_late(struct saved_ended *ke, struct tracker *t, uint64_t now_ns);

/*
 * The jobs for which one child process makes profiles, all from one snapshot.
 *
 * All 0: no batch. Set one, open its files, start it; when its worker has ended, read the results, and clear it. One
 * at a time.
 */

#define KEEP_BATCH_CAP WORKER_FILES_CAP

struct saved_batch {
	const struct saved_store *store; /* only the child writes to it */
	struct saved_job jobs[KEEP_BATCH_CAP];
	size_t job_cnt;
	struct saved_result *results; /* by job; in memory that the child sees, too */
	int64_t last_epoch_ms; /* of any job so far */
	struct worker worker;
};

/* What the child tells of a job besides the error of its making, which the worker has. */
struct saved_result {
	int write_err; /* -errno: of writing to the store's folder */
	double inuse_bytes; /* in the profile; < 0: not known */
};

/* Takes the first KEEP_BATCH_CAP jobs. A caller that takes over a job's fd sets it to -1. */
void saved_batch_set(struct saved_batch *b, const struct saved_job *jobs, size_t cnt);
/* Open files in memory for the profiles. From here on the jobs have the time epoch_ns, give or take some
 * milliseconds, so that no two have the same. -errno: clear the batch. */
int saved_batch_open_files(struct saved_batch *b, int64_t epoch_ns);
/* Forget the jobs, and close the fds that nobody took over. */
void saved_batch_clear(struct saved_batch *b);

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

/* What saver.c watches, and saved_jobs.c makes. */
struct saver {
	struct saved_store *store;
	struct saved_watch watch;
	struct saved_batch batch;
	struct result_source src;
	struct loop *loop;
	struct saved_ended ended;
	struct saved_rest rest;
	bool is_hurried;
	uint64_t failed_cnt;
};

/* Pointers are valid until the next add or del. NULL: it is not watched. */
struct watched *saved_watch_find(const struct saved_watch *kw, pid_t pid);
/* Set has_inuse. A process without a budget yet has all its probes. */
void saved_set_has_inuse(const struct saver *k, struct watched *w);

#endif
