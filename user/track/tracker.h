/* SPDX-License-Identifier: MIT */
/*
 * tracker.h - the tracked processes: their mappings, probes and lives.
 *
 * For each process the tracker reads the executable mappings, compiles new files (files.h), hands
 * the mapping set to the engine, and probes the allocators among the files (probes.h). Later
 * changes (dlopen, exec, fork, exit) arrive as events; they mark the process, and tracker_work()
 * does the work. Tracked images are kept in instances.h.
 */
#ifndef HT_TRACK_TRACKER_H
#define HT_TRACK_TRACKER_H

#include "base/std.h"
#include "base/vec.h"
#include "heaptap/abi.h"
#include "profile/recording.h"
#include "track/instances.h"
#include "track/policy.h"
#include "track/probes.h"

struct engine;
struct guardian;
struct process_events_map;
struct reclaim;
struct track_files;
struct tracker;

/* All arguments must outlive it. */
int tracker_new(struct engine *engine, struct guardian *guardian, struct track_files *files,
		const struct track_policy *policy, struct tracker **ret);
/* Detach all probes. */
void tracker_free(struct tracker *t);

/* Follow pid from now on: read, compile, probe. After a failure it may be partly tracked: call tracker_remove(). */
int tracker_add(struct tracker *t, pid_t pid);
/* Stop following pid: detach its probes; its samples stay until they are reclaimed. */
void tracker_remove(struct tracker *t, pid_t pid);
/*
 * Read what the probes of a process have cost so far. pid 0: all processes, where they share probes
 * (policy.follow). -ESRCH: not tracked.
 */
int tracker_read_hits(const struct tracker *t, pid_t pid, struct ht_hits *ret);
/* CPU time of all threads of a process since it is tracked. -ESRCH: it is gone. */
int tracker_read_cpu(const struct tracker *t, pid_t pid, uint64_t *ret_ns);
/* Are processes tapped, or to be tapped, where allowed? */
bool tracker_wants_taps(const struct tracker *t);
/* May tracker_tap() be asked for it? Not twice. */
bool tracker_may_tap(const struct tracker *t, pid_t pid);
/*
 * With policy.taps_on_request: tap a process now that has probes (pid 0: all that share them), and detach these. What the
 * probes have sampled stays, as far as it is in use: its frees are seen by the tap. Allocations must go into the sums only
 * (engine_change_target()) from before until afterwards. *ret_keeps_inuse: false: there was no room for all of that. -EPERM:
 * refused, and the reason was logged.
 */
int tracker_tap(struct tracker *t, pid_t pid, bool *ret_keeps_inuse);
/* Call it before: what takes its time, and need not be in that. -EPERM: it may not be tapped. */
int tracker_prepare_tap(struct tracker *t, pid_t pid);
/* pid 0: are all of them? */
bool tracker_is_tapped(const struct tracker *t, pid_t pid);
/* Set what samples of a process may cost (pid 0: those of all processes, with policy.follow). Samples
 * become fewer; nothing else is given up. */
void tracker_limit_tap(struct tracker *t, pid_t pid, const struct recording_limit *limit);
/* When following began, before the first probe. CLOCK_MONOTONIC. */
uint64_t tracker_followed_ns(const struct tracker *t, pid_t pid);
/* Set which probes the process keeps: see probes.h. Detaching is done when guardian_is_detached() says
 * so of the ticket. pid 0 as above. */
int tracker_keep_probes(struct tracker *t, pid_t pid, enum probes_kept kept, uint64_t *ret_ticket);
/* Wait until detaching is done. */
void tracker_wait_detached(struct tracker *t, uint64_t ticket);
/* Generation of the image read last. */
uint32_t tracker_generation(const struct tracker *t, pid_t pid);
/* Does this generation belong to the process now tracked as pid, not to an earlier process with the same pid? */
bool tracker_is_of(const struct tracker *t, pid_t pid, uint32_t generation);
bool tracker_follows(const struct tracker *t, pid_t pid);
/* Was a known allocator mapped when the tracked process's mappings were last read? -EAGAIN: some of its files are still
 * being read. */
int tracker_has_allocator(const struct tracker *t, pid_t pid);
/* Is this image over, that is neither the present image of a tracked process nor a newer one? */
bool tracker_is_over(const struct tracker *t, pid_t pid, uint32_t generation);
/*
 * Keep the samples of this image after it is over: reclaim_run() leaves them alone until
 * tracker_unpin_image().
 */
int tracker_pin_image(struct tracker *t, pid_t pid, uint32_t generation);
void tracker_unpin_image(struct tracker *t, pid_t pid, uint32_t generation);
/* Is it over, and not pinned? */
bool tracker_is_let_go(const struct tracker *t, pid_t pid, uint32_t generation);
/*
 * Removes what images that are over (ended, removed, or replaced by an exec) left behind: samples,
 * instances, files that nobody maps. For reclaim_run(), reclaim_ask() and reclaim_counts(): see kernel/reclaim.h.
 */
struct reclaim *tracker_reclaim(const struct tracker *t);
/* The ith of the processes tracked now, in no order. */
pid_t tracker_running_at(const struct tracker *t, size_t i);
/*
 * Follow a process that waits to be executed. Its files are known by path only. They are probed
 * before it maps anything.
 */
int tracker_add_launch(struct tracker *t, pid_t pid, const char *const *paths, size_t path_cnt);

/*
 * The process is held until until_ns, after an exec or because its loader has mapped libraries.
 * Read it now, so that nothing is missed. *ret_traces: it traces programs itself, see struct
 * track_loader.
 */
void tracker_read_held(struct tracker *t, pid_t pid, bool is_exec, uint64_t until_ns,
		       bool *ret_traces);

/* Take an event. Cheap; tracker_work() does the work. */
void tracker_on_event(struct tracker *t, const struct ht_event *event);
void tracker_on_mmap(struct tracker *t, const struct process_events_map *map);
void tracker_on_code(struct tracker *t, pid_t pid); /* it made memory without a file executable */
void tracker_on_lost(struct tracker *t);
/* Do the work that events asked for, one process after another in turn, until 0.2 s have passed and
 * the current process is done. Call again when tracker_wait_ms() says so. */
int tracker_work(struct tracker *t);
/* Maximum time until the next call of tracker_work(). */
int tracker_wait_ms(const struct tracker *t);

/* Read what running processes count themselves (scope_counters), and new names of label keys. Call now and then. */
void tracker_read_counters(struct tracker *t);

/* Followed processes that still run. */
size_t tracker_running_cnt(const struct tracker *t);
/* What was done so far. */
struct tracker_counts {
	uint64_t followed_cnt, ended_cnt; /* tracked processes, and those of them that are over */
	struct probes_counts
		probes; /* the failures include files that could not be entered or read */
};
struct tracker_counts tracker_counts(const struct tracker *t);
/* See track_files_most_unproven(): its path; NULL: none. */
const char *tracker_most_unproven(const struct tracker *t, uint64_t *ret_cnt);

struct probes *tracker_probes(const struct tracker *t);
const struct instances *tracker_instances(const struct tracker *t);

/* From here on what is held stays as it is. Detach the allocation probes... */
void tracker_stop_allocs(struct tracker *t);
/* ... and then the rest. */
void tracker_stop(struct tracker *t);

#endif
