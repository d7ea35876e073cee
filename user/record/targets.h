/* SPDX-License-Identifier: MIT */
/*
 * targets.h - the processes of a recording: checks them before anything is attached, and keeps what is known of
 * each while it runs.
 *
 * Only the tracker knows children that are born while it is recorded (--follow).
 */
#ifndef HT_RECORD_TARGETS_H
#define HT_RECORD_TARGETS_H

#include "base/std.h"
#include "base/vec.h"
#include "proc/runtime_kind.h"

struct engine;
struct tracker;

struct target {
	pid_t pid;
	char comm[16];
	char *exe; /* as the target sees it; "" = not known */
	int seccomp;
	bool catches_sigsys;
	bool is_main_thread_gone;
	uint64_t rss_begin_bytes,
		rss_bytes; /* before it was attached to, and when last seen; 0: not known */
	uint64_t file_begin_bytes, file_bytes; /* the part of it that is pages of files */
	uint64_t throw_limit_bytes; /* see throw_limit_bytes() */
	struct heap_kind heap;
	bool has_other_heap; /* another heap since its exec; the reporter clears it */
};

struct reader;

struct targets {
	struct reader *reader; /* see proc/reader.h */
	VEC(struct target) list;
	size_t next; /* index to check next */
};

void targets_release(struct targets *t);
/*
 * After -ESRCH: wait a little, and try again? A process whose thread executes another program seems to have ended: its
 * first thread has, and the others are about to. *looks: 0 at first.
 */
bool target_may_return(pid_t pid, int *looks);
/*
 * All named processes must exist and be such as can be recorded; of the others, found by rules, at least one.
 * Faults, and processes that are left out, were logged.
 */
int targets_check(struct targets *t, const pid_t *pids, size_t cnt, size_t named_cnt);
/* Add a program that waits to be executed: only its path is known. */
int targets_add_launched(struct targets *t, pid_t pid, const char *path);

/*
 * Follow all children and further descendants that the followed processes already have, and add them to targets. The engine's events report forks from
 * when the parent is followed on; /proc shows what was forked before. So it misses none if it starts after
 * following began and repeats until there are no new ones. A process whose parent has ended meanwhile is not
 * recognised as a descendant. Processes that cannot be recorded are left out, and logged.
 */
int family_add(struct engine *e, struct tracker *t, struct targets *targets);

/* Read again what /proc says of some of them, in turn. */
void targets_refresh(struct targets *t);
/*
 * Up to which size may the return of a throwing function be probed?
 *
 * A return probe replaces the return address on the stack. If an exception leaves the function, the unwinder meets
 * that address, knows nothing about it, and ends the program. So a call that is going to fail must not be probed:
 * sizes that the process cannot get any more are left out, with a margin for what it may take until the next look.
 * Limit in bytes for the process as it is now. address_limit_bytes: its RLIMIT_AS, 0 = none.
 */
uint64_t throw_limit_bytes(pid_t pid, uint64_t address_limit_bytes);
/* The least limit of all. */
uint64_t targets_throw_limit(const struct targets *t);

/* "PID 12 (server)", "3 processes (redis-server, nginx, ...)" */
#define TARGETS_NAME_BYTES 128
void targets_name(const struct targets *t, char buf[static TARGETS_NAME_BYTES]);

#endif
