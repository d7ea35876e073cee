/* SPDX-License-Identifier: MIT */
/*
 * profile_lane.h - a queue of files that one child makes one after the other.
 *
 * There are three lanes, so that no request waits for a process that is slow, because of its files or its amounts.
 * In the quick lane each file has LANE_QUICK_NAMES_NS for its names and LANE_QUICK_FILE_NS in all. A file that
 * needs longer is given up there and made in the slow lane, which makes one file at a time and takes as long as
 * necessary. A process that was slow begins there the next time, until it is quick again. Pushes have a lane of
 * their own.
 *
 * So a request for the profile of one process waits at most LANE_QUICK_FILE_NS for each other process that is slow
 * for the first time, and never for processes that are known to be slow.
 */
#ifndef HT_RESULT_PROFILE_LANE_H
#define HT_RESULT_PROFILE_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "result/worker.h"

enum lane_kind { LANE_QUICK, LANE_SLOW, LANE_PUSH, LANE_CNT };

#define LANE_QUICK_NAMES_NS (NS_PER_S / 2)
#define LANE_QUICK_FILE_NS NS_PER_S
#define LANE_FILES_CAP 16 /* made by one child at most */

struct lane_news;

struct profile_lane {
	enum lane_kind kind;
	size_t file_cnt;
	struct worker worker;
	struct lane_news *news; /* written by the child, in memory that both see */
};

/* Runs in the child: make file i. -ETIME: this takes too long for the quick lane. */
typedef int (*lane_make_fn)(void *ctx, size_t i);

int profile_lane_init(struct profile_lane *l, enum lane_kind kind);
/* End the child. */
void profile_lane_release(struct profile_lane *l);

/* Most files that one child may make. */
size_t profile_lane_cap(const struct profile_lane *l);
/* Call make in a child for files 0 <= i < file_cnt. */
int profile_lane_start(struct profile_lane *l, size_t file_cnt, uint64_t moment_ns,
		       lane_make_fn make, void *ctx);
bool profile_lane_is_at_work(const struct profile_lane *l);
/* End a child that takes too long. true: call profile_lane_reap(), as no descriptor will tell. */
bool profile_lane_check(struct profile_lane *l);
/* true: the child has ended or is left alone, and the files' results are there. ret_ns: how long it took. */
bool profile_lane_reap(struct profile_lane *l, uint64_t *ret_ns);

enum lane_result {
	LANE_OVER, /* finished with *ret_err; -EINTR: the child was ended while it made this file */
	LANE_NOT_BEGUN, /* may be made by the next child */
	LANE_TOO_SLOW, /* must be made in the slow lane */
};

/* Valid after profile_lane_reap(), until the next start. */
enum lane_result profile_lane_result(const struct profile_lane *l, size_t i, int *ret_err);

/* The processes that were slow lately. All 0: none. */
#define SLOW_PROCESSES_CAP 64

struct slow_processes {
	struct {
		pid_t pid; /* 0 with generation 0: the profile of all processes */
		uint32_t generation;
		bool is_slow;
	} known[SLOW_PROCESSES_CAP];
	size_t next;
};

void slow_processes_set(struct slow_processes *s, pid_t pid, uint32_t generation, bool is_slow);
bool slow_processes_has(const struct slow_processes *s, pid_t pid, uint32_t generation);

#endif
