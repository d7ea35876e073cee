/* SPDX-License-Identifier: MIT */
/*
 * tracker.h - the followed processes: their mappings, probes and lives.
 *
 * For each process: its executable mappings are read, new files compiled (files.h), the mapping
 * set handed to the engine, and the allocators among the files probed - frees before
 * allocations, so that no allocation is seen whose free could be missed. Later changes (dlopen,
 * exec, fork, exit) arrive as events, mark the process and are worked off by tracker_work().
 *
 * A process image is an *instance*: {tgid, generation}. Exec makes a new one. Instances stay known
 * after they have ended, because the final snapshot still has their samples.
 */
#ifndef HT_TRACK_TRACKER_H
#define HT_TRACK_TRACKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "heaptap/abi.h"

struct engine;
struct track_files;
struct tracker;

struct tracker_options {
	/*
	 * Children become followed processes of their own. Probes are then not bound to a process but
	 * fire for every one that maps the file: only so are children seen from their first moment
	 * on. (Events that children inherit could do that for them alone, but cost 10 ms each at the
	 * end of a child: 220 ms a fork with glibc's entry points.)
	 */
	bool follow;
	/*
	 * Also probe functions that throw where every return is probed (no session attachment). An
	 * exception through a return probe ends the program: see record/throw_limit.h.
	 */
	bool probe_throwing;
	uint32_t rate_idx;
};

struct track_instance {
	pid_t pid;
	uint32_t generation;
	char comm[HT_COMM_BYTES];
	char *exe; /* as the target sees it; "" = unknown */
	bool has_ended; /* exited, or replaced by exec */
};

int tracker_new(struct engine *engine, struct track_files *files,
		const struct tracker_options *opts, struct tracker **ret);
/* Takes every probe out. */
void tracker_free(struct tracker *t);

/* Follow pid from now on: read, compile, probe. */
int tracker_add(struct tracker *t, pid_t pid);
/*
 * Follow a process that waits to be executed: its files are known by path only. Probes are in
 * place before it maps anything.
 */
int tracker_add_launch(struct tracker *t, pid_t pid, const char *const *paths, size_t path_cnt);

/* Events. Cheap; the work is done by tracker_work(). */
void tracker_on_event(struct tracker *t, const struct ht_event *event);
void tracker_on_mmap(struct tracker *t, pid_t pid);
void tracker_on_lost(struct tracker *t);
/* Work off what events asked for. Call when tracker_wants_work() says so. */
int tracker_work(struct tracker *t);
bool tracker_wants_work(const struct tracker *t);

/* Followed processes that still run. */
size_t tracker_running_cnt(const struct tracker *t);
/* Sites probed so far, over all processes. */
size_t tracker_site_cnt(const struct tracker *t);
/* Probed sites that cost a single-step. */
size_t tracker_stepped_cnt(const struct tracker *t);
/* Sites left alone because they may throw (see probe_throwing). */
size_t tracker_throwing_cnt(const struct tracker *t);
/* Sites that could not be attached and files that could not be entered, and why the first of
 * them could not (0 = none). */
size_t tracker_failed_cnt(const struct tracker *t, int *ret_err);

const struct track_instance *tracker_instances(const struct tracker *t, size_t *ret_cnt);
const struct track_instance *tracker_find_instance(const struct tracker *t, pid_t pid,
						   uint32_t generation);

/* Take the allocation probes out (no new samples; frees are still seen)... */
void tracker_stop_allocs(struct tracker *t);
/* ... and then the rest. */
void tracker_stop(struct tracker *t);

#endif
