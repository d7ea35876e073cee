/* SPDX-License-Identifier: MIT */
/*
 * worker.h - a forked child that does slow work with what the daemon knows at that moment.
 *
 * Symbols are slow and hungry: the child has its own copy of everything, lower priority when it may
 * wait, and ends with heaptap. Of the descriptors it has standard input, output and error, files
 * (those in memory too) and BPF maps: what else the work needs it has to open.
 */
#ifndef HT_SERVE_WORKER_H
#define HT_SERVE_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Children that a kill has not ended yet, because they wait in the kernel. When there are as many, the last
 * one is waited for. */
#define WORKER_HUNG_CAP 16

/* All 0: none is at work. */
struct worker {
	pid_t pid;
	/* Readable when it has ended; while pid. A child that is forked meanwhile has a copy until it
	 * comes to close it, so that closing this one may take it out of no epoll set: it must be
	 * watched with EPOLLONESHOT. */
	int fd;
	uint64_t began_ns, moment_ns;
	uint64_t killed_ns; /* 0: it was not */
	const char *command;
	bool was_stopped; /* the last one that was at work, see worker_stop() */
	pid_t hung[WORKER_HUNG_CAP]; /* 0: free */
};

struct worker_options {
	const char *command; /* whose messages these are; NULL: serve's */
	bool is_urgent;
	uint64_t moment_ns; /* when the snapshot was begun that it works with */
};

/* fn runs in the child, and returns its exit status. */
int worker_start(struct worker *w, const struct worker_options *opts, int (*fn)(void *ctx),
		 void *ctx);
/* When the snapshot was begun whose stacks it still looks up; UINT64_MAX: there is none. */
uint64_t worker_reader_since_ns(const struct worker *w);
/* Has it taken too long? Then it is ended, which is told as any other end; true: it was, and does not
 * end: worker_reap() forgets it. */
bool worker_check(struct worker *w);
/* As if it had taken too long, which is nothing to speak of. */
void worker_stop(struct worker *w);
/* false: none is at work, or it has not ended. Never waits. what: for the message when it did so by a signal.
 * ret_cpu_ns: what it used, with its own children. */
bool worker_reap(struct worker *w, const char *what, uint64_t *ret_cpu_ns);
/* Ends it, without waiting for long. */
void worker_kill(struct worker *w);

#endif
