/* SPDX-License-Identifier: MIT */
/*
 * worker.h - a forked child that does slow work with a copy of what the daemon knows at that moment.
 *
 * Symbols take much time and memory: the child has its own copy of everything, lower priority unless it is urgent,
 * and ends with heaptap. Of the descriptors it keeps standard input, output and error, files (those in memory too)
 * and BPF maps: all others that the work needs it has to open.
 */
#ifndef HT_RESULT_WORKER_H
#define HT_RESULT_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Killed children that have not ended yet, because they wait in the kernel. When there are this many, the last one
 * is waited for. */
#define WORKER_HUNG_CAP 16

/* All 0: no child is at work. */
struct worker {
	pid_t pid;
	/* Readable when the child has ended; valid while pid is set. A child forked meanwhile holds a copy until it
	 * closes it, so closing this one may leave it in an epoll set: watch it with EPOLLONESHOT. */
	int fd;
	uint64_t began_ns, moment_ns;
	uint64_t killed_ns; /* 0: it was not killed */
	const char *command;
	bool was_stopped; /* the last child was ended by worker_stop() */
	pid_t hung[WORKER_HUNG_CAP]; /* 0: free */
};

struct worker_options {
	const char *command; /* named in the child's messages; NULL: serve */
	bool is_urgent;
	uint64_t moment_ns; /* when the snapshot began that the child works with */
};

/* fn runs in the child and returns its exit status. */
int worker_start(struct worker *w, const struct worker_options *opts, int (*fn)(void *ctx),
		 void *ctx);
/* When the snapshot began whose stacks the child still looks up; UINT64_MAX: none. */
uint64_t worker_reader_since_ns(const struct worker *w);
/* End a child that has taken too long; its end is reported like any other. true: it was killed and does not end:
 * worker_reap() forgets it. */
bool worker_check(struct worker *w);
/* End the child as if it had taken too long, but without a message. */
void worker_stop(struct worker *w);
/* Never waits. false: no child is at work, or it has not ended. what: names the work in the message about an end by
 * a signal. ret_cpu_ns: CPU time of the child and its own children. */
bool worker_reap(struct worker *w, const char *what, uint64_t *ret_cpu_ns);
/* End the child, without waiting for long. */
void worker_kill(struct worker *w);

#endif
