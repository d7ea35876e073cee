/* SPDX-License-Identifier: MIT */
/*
 * worker.h - a forked child that makes files with a copy of what its parent knows at that moment.
 *
 * Symbols take much time and memory: the child has its own copy of everything, lower priority unless it is urgent,
 * and ends with heaptap. Of the descriptors it keeps standard input, output and error, files (those in memory too)
 * and BPF maps: all others that the work needs it has to open.
 *
 * It makes its files one after the other. What became of each is told in memory that both see, so what is made is
 * not lost when the child is ended.
 */
#ifndef HT_RECORD_WORKER_H
#define HT_RECORD_WORKER_H

#include "base/std.h"

/* Killed children that have not ended yet, because they wait in the kernel. When there are this many, the last one
 * is waited for. */
#define WORKER_HUNG_CAP 16
#define WORKER_FILES_CAP 16 /* made by one child at most */

struct worker_options {
	const char *command; /* named in messages; NULL: serve */
	const char *what; /* names the work in messages: "making profiles" */
	bool is_urgent;
	uint64_t moment_ns; /* when the snapshot began that the child works with */
	/* The time that one file may take; 0: as long as the child. The files behind one that takes longer do not wait
	 * for more of that kind: they are for the next child. */
	uint64_t file_ns;
};

struct worker_news;

/* All 0: no child is at work. */
struct worker {
	pid_t pid;
	/* Readable when the child has ended; valid while pid is set. A child forked meanwhile holds a copy until it
	 * closes it, so closing this one may leave it in an epoll set: watch it with EPOLLONESHOT. */
	int fd;
	struct worker_options opts;
	uint64_t began_ns;
	uint64_t killed_ns; /* 0: it was not killed */
	/* Of the last child: */
	bool was_stopped; /* a file took too long */
	uint64_t took_ns, cpu_ns; /* CPU time with that of its own children */
	struct worker_news *news; /* written by the child */
	pid_t hung[WORKER_HUNG_CAP]; /* 0: free */
};

/* Runs in the child: make file i. Returns 0 or -errno; -ETIME: this takes longer than file_ns allows. */
typedef int (*worker_fn)(void *ctx, size_t i);

/* Call make in a child for files 0 <= i < file_cnt. */
int worker_start(struct worker *w, const struct worker_options *opts, size_t file_cnt,
		 worker_fn make, void *ctx);
/* When the snapshot began whose stacks the child still looks up; UINT64_MAX: none. */
uint64_t worker_reader_since_ns(const struct worker *w);
/* End a child that takes too long; its end is reported like any other. true: it was killed and does not end:
 * worker_reap() forgets it. */
bool worker_check(struct worker *w);
/* Never waits. false: no child is at work, or it has not ended. */
bool worker_reap(struct worker *w);
/* End the child, without waiting for long, and free what it tells. */
void worker_release(struct worker *w);

enum worker_result {
	WORKER_OVER, /* finished with *ret_err; -EINTR: the child was ended while it made this file */
	WORKER_NOT_BEGUN, /* may be made by the next child */
	WORKER_TOO_SLOW, /* takes longer than file_ns */
};

/* Valid after worker_reap(), until the next start. */
enum worker_result worker_result(const struct worker *w, size_t i, int *ret_err);

#endif
