/* SPDX-License-Identifier: MIT */
/*
 * targets.h - the processes that a recording is of: checked before anything is attached, and what is
 * known of each while it runs.
 *
 * Children that are born while it is recorded (--follow) are the tracker's only.
 */
#ifndef HT_RECORD_TARGETS_H
#define HT_RECORD_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "proc/heap_kind.h"

struct process_info;

struct target {
	pid_t pid;
	char comm[16];
	char *exe; /* as the target sees it; "" = not known */
	int seccomp;
	bool is_main_thread_gone;
	uint64_t rss_begin_bytes,
		rss_bytes; /* before it was attached to, and last seen; 0: not known */
	uint64_t throw_limit_bytes; /* see record/throw_limit.h */
	struct heap_kind heap;
	bool has_other_heap; /* than it had, since it executed another program: for who tells about it */
};

struct targets {
	VEC(struct target) list;
	size_t next; /* to be looked at again */
};

void targets_release(struct targets *t);
/*
 * All that are named must be there and such as can be recorded; of the others, who were found by rules, at
 * least one. What is wrong, and who is left out, was said.
 */
int targets_check(struct targets *t, const pid_t *pids, size_t cnt, size_t named_cnt);
/* One more that runs, and that was checked. */
int targets_add(struct targets *t, const struct process_info *info);
/* A program that waits to be executed: nothing is known of it but its path. */
int targets_add_launched(struct targets *t, pid_t pid, const char *path);
/* It ended before it could be attached to. */
void targets_drop(struct targets *t, pid_t pid);
bool targets_have(const struct targets *t, pid_t pid);

/* What /proc says by now, of some of them in turn. */
void targets_look(struct targets *t);
/* The least of them; see record/throw_limit.h. */
uint64_t targets_throw_limit(const struct targets *t);
uint64_t targets_rss_begin(const struct targets *t);
uint64_t targets_rss(const struct targets *t);

/* "PID 12 (server)", "3 processes (redis-server, nginx, ...)" */
#define TARGETS_NAME_BYTES 128
void targets_name(const struct targets *t, char buf[static TARGETS_NAME_BYTES]);
/* "12,13", for -p; "12,13,..." when there are many. */
void targets_pids(const struct targets *t, char buf[static TARGETS_NAME_BYTES]);

#endif
