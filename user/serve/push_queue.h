/* SPDX-License-Identifier: MIT */
/*
 * push_queue.h - the requests for one destination: sent one after the other, the oldest first; tried again after a
 * failure, and kept in a bounded spool meanwhile (push_spool.c).
 *
 * Nothing here waits for the network. The caller waits for push_queue_fd() and calls push_queue_run() when it is
 * readable; this includes the times of retries (push_retry_delay_ns()). Every request that was added is in exactly
 * one of: sent, refused, dropped, waiting. (A request dropped for want of room while it is being sent counts as
 * dropped, although it may arrive.)
 */
#ifndef HT_SERVE_PUSH_QUEUE_H
#define HT_SERVE_PUSH_QUEUE_H

#include "base/std.h"
#include "serve/push_http.h"
#include "serve/push_message.h"

/*
 * push_spool.c: requests that wait for a backend: first in, first out, bounded in number and bytes. When there is
 * no room, the oldest are dropped and counted.
 *
 * The newest requests are in memory, so that a backend that answers costs no disk. Older ones are in the folder,
 * one file each, and survive heaptap: push_spool_settle() writes those that are still in memory. Without a folder
 * all are in memory.
 *
 * A file is made under another name, then renamed: under its own name it is complete, unless the machine lost
 * power, which its checksum shows (nothing is synced: capture does not wait for disks). A damaged file is skipped,
 * removed and counted. The folder belongs to one process at a time.
 */

struct push_spool;

struct push_spool_options {
	const char *dir; /* NULL: memory only; created if missing, its parent is not */
	size_t cnt_max;
	uint64_t bytes_max; /* of all requests, in memory and on disk */
	uint64_t memory_bytes_max; /* of those in memory, if there is a folder */
};

struct push_spool_stats {
	size_t cnt; /* waiting now */
	uint64_t bytes;
	uint64_t dropped_cnt; /* the oldest, for want of room */
	uint64_t unwritten_cnt; /* of these, because the folder took no more: disk full, ... */
	uint64_t corrupt_cnt; /* damaged or foreign files that were removed */
};

/* Requests that an earlier process left in the folder wait again. -EBUSY: another process uses the folder; -EPERM:
 * others can write to it (folder.h, FOLDER_OURS); -errno of making, opening or reading it. */
int push_spool_open(const struct push_spool_options *opts, struct push_spool **ret);
/* Calls push_spool_settle() first. */
void push_spool_close(struct push_spool *s);

/* Takes over data (malloc'd), also on failure: -ENOMEM, -E2BIG (larger than bytes_max; counted as dropped). */
int push_spool_add(struct push_spool *s, uint8_t *data, size_t bytes);
/* Return a copy of the oldest, which the caller frees, and the number for push_spool_drop(). -ENOENT: none waits;
 * -ENOMEM, -EMFILE. */
int push_spool_first(struct push_spool *s, uint8_t **ret, size_t *ret_bytes, uint64_t *ret_seq);
/* Remove the oldest, which was sent or refused, without counting it. false: it was already dropped for want of
 * room, and counted. */
bool push_spool_drop(struct push_spool *s, uint64_t seq);
/* Write the requests in memory to the folder. */
void push_spool_settle(struct push_spool *s);
void push_spool_stats(const struct push_spool *s, struct push_spool_stats *ret);

struct push_queue;
struct push_sender;

#define PUSH_TRIES_MAX 5
/* Default limit of waiting requests: two rounds of as many processes as can be followed. */
#define PUSH_QUEUE_CNT_MAX 8192

struct push_queue_options {
	struct push_http_options http;
	struct push_spool_options spool;
	uint64_t retry_min_ns, retry_max_ns;
};

struct push_queue_stats {
	struct push_spool_stats spool; /* waiting, dropped, corrupt */
	uint64_t added_cnt; /* by push_queue_take(), of this process */
	uint64_t sent_cnt;
	uint64_t refused_cnt; /* the target never takes them, or did not in PUSH_TRIES_MAX tries */
	uint64_t failed_cnt; /* tries, of any request */
	bool is_failing; /* since the last request that was sent, or refused at once */
	char last_error[256]; /* "" = none yet */
};

extern const struct push_queue_options push_queue_defaults;
/* -errno of the spool (-EBUSY: another heaptap uses it) and of push_http_open(), logged. */
int push_queue_open(const struct push_queue_options *opts, struct push_queue **ret);
/* Waiting requests go to the spool's folder; without one they are lost. */
void push_queue_close(struct push_queue *q);
int push_queue_fd(const struct push_queue *q);
void push_queue_run(struct push_queue *q);

/* Add one request, and take over its body (malloc'd). -ENOMEM; -E2BIG: larger than the spool holds (this is counted as
 * added and dropped). */
int push_queue_take(struct push_queue *q, uint8_t *body, size_t bytes);
void push_queue_stats(const struct push_queue *q, struct push_queue_stats *ret);

/*
 * A queue and the thread that runs it.
 *
 * A request takes several exchanges of packets with the destination. In the event loop each of them would wait for
 * a turn, and turns are long while probes are put into new processes, or when the profiled processes leave little
 * CPU: then pushes come faster than they are sent. The thread mostly sleeps, so it is woken at once.
 *
 * All functions may be called from one thread, at any time; none waits for the network.
 */

/* As push_queue_open(); -EAGAIN: no more threads. */
int push_sender_open(const struct push_queue_options *opts, struct push_sender **ret);
/* As push_queue_close(); NULL is fine. */
void push_sender_close(struct push_sender *s);

/* As the functions of the queue. */
void push_sender_set_identity(struct push_sender *s, const struct push_identity *identity);
int push_sender_take(struct push_sender *s, uint8_t *body, size_t bytes);
void push_sender_stats(struct push_sender *s, struct push_queue_stats *ret);

/* When to push, and when to try again. Times are those of now_ns(). */

struct push_clock {
	uint64_t interval_ns; /* 0: never due */
	uint64_t due_ns;
};

/* Be due each interval from now on, the first time at a random moment within it, so that many hosts started
 * together do not push together. An unchanged interval changes nothing. */
void push_clock_set(struct push_clock *c, uint64_t interval_ns, uint64_t now);
/* True once for each interval. Missed intervals (the machine slept) are not made up for. */
bool push_clock_is_due(struct push_clock *c, uint64_t now);

/* Milliseconds until it is due, rounded up; -1: never. */
int push_clock_wait_ms(const struct push_clock *c, uint64_t now);

/* Delay after the fail_cnt-th failure (from 1) in a row: min_ns, doubled each time, up to max_ns; the last half of
 * it is random, so that many hosts do not come back to a server at once. */
uint64_t push_retry_delay_ns(uint64_t min_ns, uint64_t max_ns, unsigned int fail_cnt);

/*
 * The request for a process's profile, in the form that loses least there: Parca gets a series for each scope and thread
 * pool, Pyroscope one series with labels at its rows, within its limits (series.h, profile_copy.h).
 */

struct profile;

#define PUSH_SERIES_MAX 64

/* What was changed to fit. */
struct push_lost {
	size_t folded_series; /* into scope="(other)" */
	size_t folded_rows, cut_stacks; /* Pyroscope */
};

/*
 * labels: of the process ("job", "node", "pid", "comm", ...). Adds `__name__` and, for Pyroscope, `service_name`
 * (if missing: the value of "comm") and `__delta__`; a name that occurs twice keeps its first value. *ret is NULL when
 * the profile is empty; the caller frees it. Uses no queue, so a child process can do it. -EINVAL: not a label name
 * ([a-zA-Z_][a-zA-Z0-9_]*); -ENOMEM; -E2BIG: larger than the target accepts; errors of profile_limit().
 */
int push_profile_encode(const struct push_target *t, const struct profile *p,
			const struct push_label *labels, size_t label_cnt,
			struct push_lost *ret_lost, uint8_t **ret, size_t *ret_bytes);
bool push_label_name_is_valid(const char *name);

#endif
