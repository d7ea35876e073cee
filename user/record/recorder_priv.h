/* SPDX-License-Identifier: MIT */
/*
 * recorder_priv.h - what a recorder is made of: recorder_open.c sets it up, recorder.c runs it, others have small parts in that.
 */
#ifndef HT_RECORD_RECORDER_PRIV_H
#define HT_RECORD_RECORDER_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "budget/budget.h"
#include "record/live_line.h"
#include "record/recorder.h"
#include "record/targets.h"
#include "session/session.h"

struct engine;
struct governor;
struct target;
struct targets;
struct tracker;

#define MOMENT_INTERVAL_NS \
	200000000ULL /* of what is in use, to begin with: see profile/history.h */

struct recorder {
	struct recorder_options opts;
	struct targets targets;
	struct guardian *guardian;
	struct session *session;
	struct process_events *events;
	struct launch *launch;
	struct holds *holds; /* NULL: nobody is held at an exec */
	struct snapshot *snapshot;
	struct recorder_facts facts;
	struct loop *loop;
	bool is_over;
	bool has_warned; /* of the overhead */
	struct idle_tasks *idle_tasks;
	struct history *history; /* NULL: there was no memory for it */
	uint64_t counters_ns,
		looked_ns; /* when they were read, and who is recorded was looked at */
	struct live_line live_line;
};

/* For the loop; ctx is the recorder. */
void recorder_on_signal(void *ctx, int signal);
void recorder_on_tick(void *ctx);
void recorder_on_child_end(void *ctx, int fd);
void recorder_on_guardian_news(void *ctx, int fd);
void recorder_on_reader_gone(void *ctx, int fd);
void recorder_visit(void *ctx, int fd);

/* What a heap that is not malloc's means for the recording. */
void recorder_say_heap(const struct target *t);

/* cost_view.c: what the probes of those that run cost, at most, and whether all their frees are watched. */

struct cost_view {
	pid_t pid; /* whose cost it is */
	struct budget_price now;
	double share_overall;
	bool is_of_one_cpu; /* the limit that is in force for it */
	bool has_inuse, is_out;
	size_t cnt;
};

/* is_one: all have one budget. */
struct cost_view cost_view_read(const struct tracker *t, const struct governor *g, bool is_one);

/* family.c: the children that followed processes have already, and theirs. */

/*
 * Follow all descendants of the followed processes, and note them as targets. Forks are told by the
 * engine's events from when the parent is followed on, and what was forked before that is in /proc: who
 * looks after it has begun, until nobody is new, misses none. One whose parent has ended meanwhile is
 * not known for a descendant. Those that cannot be recorded are left out, and that is said.
 */
int family_add(struct engine *e, struct tracker *t, struct targets *targets);

/* started.c: the files of a program that is to be started, probed before it runs. */

/* Follows the process t that waits to execute argv; fills its heap. */
int started_track(struct tracker *tracker, struct target *t, char *const argv[]);

/* jvm_names.c: at the end of a recording, JVMs are asked for the names of their code. */

/* All that are followed and run. Says which of them were asked in vain. */
void jvm_names_ask(const struct tracker *t);

#endif
