/* SPDX-License-Identifier: MIT */
/* tap_priv.h - internal part of tap.c: the visit to a stopped process. */
#ifndef HT_TAP_TAP_PRIV_H
#define HT_TAP_TAP_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct threads;

/*
 * visit.c: works on a process while all its threads are stopped, from a process of its own, the visitor.
 *
 * The visitor ends soon afterwards, which releases threads that did not stop in time (threads.h). Killing
 * heaptap and its guardian does not kill the visitor in the middle: that would end calls of the target with
 * EINTR, or leave a thread with the registers of one of our calls. Killing the visitor as well, with the whole
 * cgroup for instance, does that.
 */

struct visit_answer {
	int err;
	uint32_t thread_cnt, cleared_cnt;
	uint64_t stopped_ns;
	pid_t asker;
	struct err why; /* why it cannot be done, as a sentence; with some errors only */
};

/* Only what it writes to *a comes back; its other changes in memory do not. */
typedef int (*visit_fn)(void *ctx, struct threads *th, struct visit_answer *a);

/* Return the error of work, or why it could not begin; also -EIO: the visitor was killed, its result is not
 * known. */
int visit_process(pid_t pid, visit_fn work, void *ctx, struct visit_answer *ret);
/* For work: is the process that asked for it gone? */
bool visit_is_orphan(const struct visit_answer *a);

#endif
