/* SPDX-License-Identifier: MIT */
/*
 * visit.h - a visit: work on a process while all its threads are stopped, that nobody waits for in vain.
 *
 * Two processes are made for each visit. The *visitor* traces the threads (threads.h); all that it does has a
 * deadline. The *accessor* opens, reads and writes the memory and the descriptors of the process, one step after
 * the other, as the visitor asks. A page of the process can make its reader wait for ever, and not even a kill
 * ends that: then the visitor lets the threads go on, and the accessor is left behind.
 *
 * visit_process() returns when the visitor has reported or its time is over. The visitor ends a little later:
 * threads that did not stop in time are released by its end. Killing heaptap and its guardian does not kill the
 * visitor in the middle. Killing the visitor as well, with the whole cgroup for instance, may end calls of the process
 * with EINTR.
 */
#ifndef HT_TAP_VISIT_H
#define HT_TAP_VISIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "tap/threads.h"

#define VISIT_PLACES_CAP 32768

/* What visitor and accessor have in common. */
struct visit_shared {
	volatile uint32_t is_over; /* the visitor has given up: change nothing any more */
	uint32_t place_cnt;
	uint64_t arg[2], result; /* of a step */
	uint8_t bytes[THREADS_FRAME_CAP]; /* likewise */
	int err;
	struct err why;
	struct thread_place place[VISIT_PLACES_CAP]; /* of the stopped threads */
};

struct visit {
	pid_t pid;
	struct threads *threads; /* NULL before they are stopped */
	struct visit_shared *shared;
	int report_fd; /* to who waits for the visit */
	int accessor_fd;
	pid_t accessor_pid;
	int accessor_err; /* it has not answered: -ETIMEDOUT; gets no processor: -ETIME; is gone: -EIO */
};

/* A step, in the accessor. What it keeps for later steps, it keeps in ctx. 0 or -errno with shared->why. */
typedef int (*visit_step)(void *ctx, struct visit_shared *shared);

struct visit_work {
	/* In the accessor, before the threads are stopped. After an error they are not stopped. */
	visit_step prepare;
	/* In the visitor, while they are stopped. */
	int (*stopped)(void *ctx, struct visit *v, struct err *why);
};

struct visit_report {
	int err;
	uint32_t thread_cnt;
	uint64_t stopped_ns;
	uint64_t result;
	struct err why; /* why it cannot be done, as a sentence */
};

/*
 * Returns report->err: that of the work, or why it could not begin. -ETIME: the threads did not stop in time, or
 * nothing could be prepared because heaptap got no processor, and nothing was done. -EAGAIN: they cannot be stopped
 * at this moment. -EIO: the visitor was killed. -ETIMEDOUT: what was asked did not come to an end. After these two it
 * is not known what has been done, unless the work says it.
 * ret_fd: a descriptor that the accessor has sent, or -1; NULL: none is expected.
 */
int visit_process(pid_t pid, const struct visit_work *work, void *ctx, struct visit_report *report,
		  int *ret_fd);

/* For the visitor: do a step in the accessor. */
int visit_do(struct visit *v, visit_step step);
/* For the visitor: has who waits given up, or gone? */
bool visit_is_alone(const struct visit *v);
/* For a step: send a descriptor to who waits for the visit. */
int visit_send_fd(int fd);

#endif
