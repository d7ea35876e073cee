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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "heaptap/abi.h"
#include "profile/recording.h"
#include "track/instances.h"
#include "track/policy.h"
#include "track/probes.h"

struct engine;
struct guardian;
struct held_links;
struct reclaim_counts;
struct track_files;
struct tracker;

/* All arguments must outlive it. */
int tracker_new(struct engine *engine, struct guardian *guardian, struct track_files *files,
		const struct track_policy *policy, struct tracker **ret);
/* Detach all probes. */
void tracker_free(struct tracker *t);

/* Follow pid from now on: read, compile, probe. After a failure it may be partly tracked: call tracker_remove(). */
int tracker_add(struct tracker *t, pid_t pid);
/* Stop following pid: detach its probes; its samples stay until tracker_reclaim(). */
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
/* pid 0: are all of them? */
bool tracker_is_tapped(const struct tracker *t, pid_t pid);
/* While nobody waits for this process: a process that cannot be tapped just now is tried again at once. */
void tracker_tap_patiently(struct tracker *t, bool is_patient);
/* Set what samples of a process may cost (pid 0: those of all processes, with policy.follow). Samples
 * become fewer; nothing else is given up. */
void tracker_limit_tap(struct tracker *t, pid_t pid, const struct recording_limit *limit);
/* Could the process not be tapped, so that it is probed? */
bool tracker_is_tap_refused(const struct tracker *t, pid_t pid);
/* When following began, before the first probe. CLOCK_MONOTONIC. */
uint64_t tracker_followed_ns(const struct tracker *t, pid_t pid);
/* Set which probes the process keeps: see probes.h. Detaching is done when guardian_is_out() says
 * so of the ticket. pid 0 as above. */
int tracker_keep_probes(struct tracker *t, pid_t pid, enum probes_kept kept, uint64_t *ret_ticket);
/* Wait until detaching is done. */
void tracker_await_out(struct tracker *t, uint64_t ticket);
/* While paused, new processes get no probes. */
void tracker_pause_attaching(struct tracker *t, bool pause);
/* Generation of the image read last. */
uint32_t tracker_generation(const struct tracker *t, pid_t pid);
/* Does this generation belong to the process now tracked as pid, not to an earlier process with the same pid? */
bool tracker_is_of(const struct tracker *t, pid_t pid, uint32_t generation);
bool tracker_follows(const struct tracker *t, pid_t pid);
/* Are files of a tracked process still being read? */
bool tracker_is_reading(const struct tracker *t, pid_t pid);
/* Was a known allocator mapped when the tracked process's mappings were last read? */
bool tracker_has_allocator(const struct tracker *t, pid_t pid);
/* Is this image over, that is neither the present image of a tracked process nor a newer one? */
bool tracker_is_over(const struct tracker *t, pid_t pid, uint32_t generation);
/*
 * Keep the samples of this image after it is over: tracker_reclaim() leaves them alone until
 * tracker_unpin_image().
 */
int tracker_pin_image(struct tracker *t, pid_t pid, uint32_t generation);
void tracker_unpin_image(struct tracker *t, pid_t pid, uint32_t generation);
/*
 * Remove what images that are over (ended, removed, or replaced by an exec) left behind: samples,
 * instances, files that nobody maps. Each call works for about budget_ns, or not at all when there
 * is nothing to do; after some seconds of calls everything is gone. See kernel/reclaim.h, also for
 * readers_since_ns.
 */
int tracker_reclaim(struct tracker *t, uint64_t readers_since_ns, uint64_t budget_ns);
/* Look for unused entries, though nothing is known to have ended. */
void tracker_ask_reclaim(struct tracker *t);
const struct reclaim_counts *tracker_reclaim_counts(const struct tracker *t);
/* The ith of the processes tracked now, in no order. */
pid_t tracker_running_at(const struct tracker *t, size_t i);
/*
 * Follow a process that waits to be executed. Its files are known by path only. They are probed
 * before it maps anything.
 */
int tracker_add_launch(struct tracker *t, pid_t pid, const char *const *paths, size_t path_cnt);

/* The policy has changed: files move with the next tracker_work(). */
void tracker_plan_anew(struct tracker *t);

/*
 * The process is held until until_ns, after an exec or because its loader has mapped libraries.
 * Read it now, so that nothing is missed. *ret_traces: it traces programs itself, see struct
 * track_loader.
 */
void tracker_read_held(struct tracker *t, pid_t pid, bool is_exec, uint64_t until_ns,
		       bool *ret_traces);

/* Take an event. Cheap; tracker_work() does the work. */
void tracker_on_event(struct tracker *t, const struct ht_event *event);
void tracker_on_mmap(struct tracker *t, pid_t pid, uint64_t ino, uint64_t time_ns);
void tracker_on_code(struct tracker *t, pid_t pid); /* it made memory without a file executable */
void tracker_on_lost(struct tracker *t);
/* Do the work that events asked for, one process after another in turn, until 0.2 s have passed and
 * the current process is done. Call again when tracker_wants_work() says so. */
int tracker_work(struct tracker *t);
bool tracker_wants_work(const struct tracker *t);
/* Maximum time until the next call of tracker_work(). */
int tracker_wait_ms(const struct tracker *t);

/* Read what running processes count themselves (scope_counters), and new names of label keys. Call now and then. */
void tracker_read_counters(struct tracker *t);

/* Number of processes tracked so far, and of these the number that are over. */
uint64_t tracker_followed_cnt(const struct tracker *t);
uint64_t tracker_ended_cnt(const struct tracker *t);
/* Followed processes that still run. */
size_t tracker_running_cnt(const struct tracker *t);
/* Sites probed so far, over all processes. */
size_t tracker_site_cnt(const struct tracker *t);
/* Probed sites that cost a single-step. */
size_t tracker_stepped_cnt(const struct tracker *t);
/* Sites left alone because they may throw (see struct track_policy). */
size_t tracker_throwing_cnt(const struct tracker *t);
/* Sites that could not be attached plus files that could not be entered; *ret_err: error of the
 * first (0 = none). */
size_t tracker_failed_cnt(const struct tracker *t, int *ret_err);
/* See track_files_most_unproven(): its path; NULL: none. */
const char *tracker_most_unproven(const struct tracker *t, uint64_t *ret_cnt);

/* The probes, for probes_file_at(). */
const struct probes *tracker_probes(const struct tracker *t);

const struct track_instance *tracker_instances(const struct tracker *t, size_t *ret_cnt);
/* Has the process executed another program since? Then nothing of the image is in use. */
bool tracker_is_replaced(const struct tracker *t, pid_t pid, uint32_t generation);
const struct track_instance *tracker_find_instance(const struct tracker *t, pid_t pid,
						   uint32_t generation);

/* From here on what is held stays as it is. Detach the allocation probes... */
void tracker_stop_allocs(struct tracker *t);
/* ... and then the rest. */
void tracker_stop(struct tracker *t);

#endif
