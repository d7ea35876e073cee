/* SPDX-License-Identifier: MIT */
/*
 * pushes.h - a profile of each followed process to each push target, once in an interval.
 *
 * The child process that makes profiles (profiles.h) makes the requests and leaves them in a file;
 * the event loop only gives them to the targets' senders (push_sender.h), and never waits for a
 * network.
 */
#ifndef HT_SERVE_PUSHES_H
#define HT_SERVE_PUSHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/push_message.h"

struct profile_source;
struct profile_request;
struct push_target;
struct track_files;
struct pushes;
struct serve_push;
struct snapshot;

/* What is pointed to must stay. */
struct pushes_options {
	const struct push_target *targets;
	size_t target_cnt;
	const struct push_label *labels;
	size_t label_cnt;
	uint64_t interval_ns;
	/* For all targets; NULL: none. See push_http.h. */
	char *token_file, *basic_file, *tenant, *ca_file;
	char *spool_dir; /* NULL: what waits is in memory only */
	/* Parca targets are given the debug information of followed processes' files, and name the
	 * frames of files that they have themselves. */
	bool sends_debuginfo;
	uint64_t debuginfo_bytes_max; /* of one file */
};

/* Says on stderr why not. With no targets nothing is ever due. */
int pushes_open(const struct pushes_options *opts, struct pushes **ret);
/*
 * Other options. What waits for targets that stay is kept; the queues of those that are gone are
 * closed, so none of the descriptors may be watched meanwhile. The spool's folder cannot change. On
 * failure, which is said, all is as it was.
 */
int pushes_change(struct pushes *p, const struct pushes_options *opts);
/* What waits is spooled when there is a folder. */
void pushes_close(struct pushes *p);

size_t pushes_cnt(const struct pushes *p);
/* Descriptors to be watched for pushes_run() (it sends debug information), 0 <= i < pushes_fd_cnt(). */
size_t pushes_fd_cnt(const struct pushes *p);
int pushes_fd(const struct pushes *p, size_t i);
void pushes_run(struct pushes *p);

/* The files that are mapped now, whose debug information may be wanted. Must stay. */
void pushes_offer(struct pushes *p, const struct track_files *files);

/* From when it is time to push until pushes_begin(). */
bool pushes_is_due(struct pushes *p);
void pushes_begin(struct pushes *p);
/* Milliseconds until it is time; -1: not by itself. */
int pushes_wait_ms(const struct pushes *p);
/* As if it were time. */
void pushes_hurry(struct pushes *p);
/* The requests, into fd: slow, in the child. */
int pushes_make(const struct pushes *p, const struct profile_source *src, const struct snapshot *s,
		const struct profile_request *moment, int fd);
/* Those that are whole in fd, to the senders. */
void pushes_take(struct pushes *p, int fd);
/* Something waits for a target that seems to answer. */
bool pushes_are_waiting(const struct pushes *p);
/* Of target i. */
void pushes_view(const struct pushes *p, size_t i, struct serve_push *ret);

#endif
