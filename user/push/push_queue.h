/* SPDX-License-Identifier: MIT */
/*
 * push_queue.h - the requests for one destination: sent one after the other, the oldest first; tried again after a
 * failure, and kept in a bounded spool meanwhile (push_spool.h).
 *
 * Nothing here waits for the network. The caller waits for push_queue_fd() and calls push_queue_run() when it is
 * readable; this includes the times of retries (push_retry_delay_ns()). Every request that was added is in exactly
 * one of: sent, refused, dropped, waiting. (A request dropped for want of room while it is being sent counts as
 * dropped, although it may arrive.)
 */
#ifndef HT_PUSH_QUEUE_H
#define HT_PUSH_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/push_http.h"
#include "push/push_message.h"
#include "push/push_spool.h"

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
	uint64_t added_cnt; /* by push_queue_add(), of this process */
	uint64_t sent_cnt, sent_bytes;
	uint64_t refused_cnt; /* the target never takes them, or did not in PUSH_TRIES_MAX tries */
	uint64_t failed_cnt; /* tries, of any request */
	uint64_t last_sent_ns; /* since the epoch; 0 = never */
	bool is_failing; /* since the last request that was sent, or refused at once */
	char last_error[256]; /* "" = none yet */
};

struct push_queue;

void push_queue_defaults(struct push_queue_options *opts);
/* -errno of the spool (-EBUSY: another heaptap uses it) and of push_http_open(), logged. */
int push_queue_open(const struct push_queue_options *opts, struct push_queue **ret);
/* Waiting requests go to the spool's folder; without one they are lost. */
void push_queue_close(struct push_queue *q);
int push_queue_fd(const struct push_queue *q);
void push_queue_run(struct push_queue *q);

/* As push_http_set_identity(). */
void push_queue_set_identity(struct push_queue *q, const struct push_http_options *opts);

/* Add one request of these series. -ENOMEM; -E2BIG: larger than the target accepts, or than the spool holds (this
 * is counted as added and dropped). */
int push_queue_add(struct push_queue *q, const struct push_series *series, size_t cnt);
/* The two halves of push_queue_add(), for a request made in another process. Encoding is pure; push_queue_take()
 * takes over body (malloc'd). */
int push_queue_encode(const struct push_target *t, const struct push_series *series, size_t cnt,
		      uint8_t **ret, size_t *ret_bytes);
int push_queue_take(struct push_queue *q, uint8_t *body, size_t bytes);
void push_queue_stats(const struct push_queue *q, struct push_queue_stats *ret);
const struct push_target *push_queue_target(const struct push_queue *q);

#endif
