/* SPDX-License-Identifier: MIT */
/* tap_priv.h - what tap.c is made of: the visit to a stopped process. */
#ifndef HT_TAP_TAP_PRIV_H
#define HT_TAP_TAP_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct threads;

/*
 * visit.c: work on a process while all its threads are stopped, done by a process of its own.
 *
 * It ends soon after, which lets go of threads that did not stop in time (threads.h). And who kills heaptap and its
 * guardian does not kill it in the middle: that would end calls of the target with EINTR, or leave a thread with the
 * registers of a call of ours. Who kills it as well, with the whole control group for instance, does that.
 */

struct visit_answer {
	int err;
	uint32_t thread_cnt, cleared_cnt;
	uint64_t stopped_ns;
	pid_t asker;
	struct err why; /* why it cannot be done: a sentence, with some errors */
};

/* What of *a it writes comes back; nothing else that it changes in memory does. */
typedef int (*visit_fn)(void *ctx, struct threads *th, struct visit_answer *a);

/* The error of work, or why it could not begin; -EIO also: the process was killed, what it has done is not known. */
int visit_process(pid_t pid, visit_fn work, void *ctx, struct visit_answer *ret);
/* For work: is who asked for it gone? */
bool visit_is_orphan(const struct visit_answer *a);

#endif
