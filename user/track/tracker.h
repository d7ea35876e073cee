/* SPDX-License-Identifier: MIT */
/*
 * tracker.h - the tracked processes: their mappings, probes and lives.
 *
 * For each process: its executable mappings are read, new files compiled (files.h), the mapping
 * set handed to the engine, and the allocators among the files probed (probes.h). Later changes
 * (dlopen, exec, fork, exit) arrive as events, mark the process and are worked off by
 * tracker_work(). What was tracked is kept in instances.h.
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
#include "track/probes.h"

struct engine;
struct guardian;
struct held_links;
struct reclaim_counts;
struct track_files;
struct tracker;

struct tracker_options {
	struct guardian *guardian; /* which attaches */
	/*
	 * Children become tracked processes of their own. Probes are then not bound to a process but
	 * fire for every one that maps the file: only so are children seen from their first moment
	 * on. (Events that children inherit could do that for them alone, but cost 10 ms each at the
	 * end of a child: 220 ms a fork with glibc's entry points.)
	 */
	bool follow;
	/* Nobody else is kept waiting: files are waited for until they are read. */
	bool is_patient;
	bool holds; /* processes are held at an exec: tracker_read_held() */
	/*
	 * Also probe functions that throw where every return is probed (no session attachment). An
	 * exception through a return probe ends the program: see record/throw_limit.h.
	 */
	bool probe_throwing;
	enum probes_source source;
	/* Tap allocators instead of probing them, with this mean distance of samples; a process that cannot be
	 * is probed, and that is said. 0: never. Such processes share no probes, also with `follow`. */
	uint64_t tap_rate_bytes;
	bool (*may_tap)(void *ctx, pid_t pid); /* NULL: everyone */
	void *may_tap_ctx;
	bool tap_rate_is_fixed; /* else it follows what it costs: tap_rate.h */
	uint32_t rate_idx;
	uint64_t reclaim_grace_ns; /* 0: RECLAIM_GRACE_NS */
	/* Read the mappings of a process again after so long, though nothing was heard of it: that it
	 * unmapped a file, nobody tells. 0: not by itself. */
	uint64_t refresh_ns;
	/* How probes are attached, unless `follow` says: see track/probes.h. is_all: who maps a file
	 * that is probed may pay for that, tracked or not. */
	bool is_all;
	enum sharing sharing;
	bool has_events; /* see struct probes_options */
	struct plan_costs costs;
};

int tracker_new(struct engine *engine, struct track_files *files,
		const struct tracker_options *opts, struct tracker **ret);
/* Takes every probe out. */
void tracker_free(struct tracker *t);

/* Follow pid from now on: read, compile, probe. After a failure it may be tracked in part:
 * tracker_remove(). */
int tracker_add(struct tracker *t, pid_t pid);
/* Follow it no longer: its probes are taken out, its samples stay until tracker_reclaim(). */
void tracker_remove(struct tracker *t, pid_t pid);
/*
 * What the probes of a process have cost so far; and which of them it keeps, see probes.h. pid 0: where all
 * share their probes (opts.follow), of all of them. -ESRCH: not tracked.
 */
int tracker_read_hits(const struct tracker *t, pid_t pid, struct ht_hits *ret);
/* CPU time that all threads of a process have used since it is tracked. -ESRCH: it is gone. */
int tracker_read_cpu(const struct tracker *t, pid_t pid, uint64_t *ret_ns);
/* Who may be tapped is, or is to be. */
bool tracker_wants_taps(const struct tracker *t);
/* pid 0: all of them. */
bool tracker_is_tapped(const struct tracker *t, pid_t pid);
/* What its samples may cost from now on (pid 0: those of all of them, with opts.follow): they become fewer, and
 * nothing else is given up. */
void tracker_limit_tap(struct tracker *t, pid_t pid, const struct recording_limit *limit);
/* It could not be tapped, and is probed. */
bool tracker_is_tap_refused(const struct tracker *t, pid_t pid);
/* Since when that is: before its first probe. CLOCK_MONOTONIC. */
uint64_t tracker_followed_ns(const struct tracker *t, pid_t pid);
/* What goes is out when guardian_is_out() says so of the ticket. */
int tracker_keep_probes(struct tracker *t, pid_t pid, enum probes_kept kept, uint64_t *ret_ticket);
/* Waits until it is. */
void tracker_await_out(struct tracker *t, uint64_t ticket);
/* New processes get no probes. */
void tracker_hold_probes(struct tracker *t, bool hold);
/* Of the image that was last read. */
uint32_t tracker_generation(const struct tracker *t, pid_t pid);
/* Is an image of this generation one of the process that pid is tracked as now, and not of one before it
 * that had the same pid? */
bool tracker_is_of(const struct tracker *t, pid_t pid, uint32_t generation);
bool tracker_follows(const struct tracker *t, pid_t pid);
/* Are files of a tracked process still being read? */
bool tracker_is_reading(const struct tracker *t, pid_t pid);
/* Of a tracked process: was a known allocator mapped when its mappings were last read? */
bool tracker_has_allocator(const struct tracker *t, pid_t pid);
/* Is this not the image, or a newer one, of a process that is tracked now? */
bool tracker_is_over(const struct tracker *t, pid_t pid, uint32_t generation);
/*
 * The samples of this image are still wanted when it is over: tracker_reclaim() leaves them alone
 * until tracker_unhold().
 */
int tracker_hold(struct tracker *t, pid_t pid, uint32_t generation);
void tracker_unhold(struct tracker *t, pid_t pid, uint32_t generation);
/*
 * Take out what images that are over (ended, removed, or replaced by an exec) left behind: samples,
 * instances, files that nobody maps. A slice of about budget_ns, nothing when there is nothing to
 * do; some seconds of slices later nothing is left. See kernel/reclaim.h, also for readers_since_ns.
 */
int tracker_reclaim(struct tracker *t, uint64_t readers_since_ns, uint64_t budget_ns);
/* Look for what nobody uses, though nothing that is known of has ended. */
void tracker_ask_reclaim(struct tracker *t);
const struct reclaim_counts *tracker_reclaim_counts(const struct tracker *t);
/* One of the processes that are tracked now, in no order. */
pid_t tracker_running_at(const struct tracker *t, size_t i);
/*
 * Follow a process that waits to be executed: its files are known by path only. Probes are in
 * place before it maps anything.
 */
int tracker_add_launch(struct tracker *t, pid_t pid, const char *const *paths, size_t path_cnt);

/* From now on. */
void tracker_set_all(struct tracker *t, bool is_all);

/*
 * The process is held until until_ns, after an exec or when its loader has mapped libraries: read it now, so
 * that nothing of it is missed. *ret_traces: it traces programs itself, see loaders_file_traces().
 */
void tracker_read_held(struct tracker *t, pid_t pid, bool is_exec, uint64_t until_ns,
		       bool *ret_traces);

/* Events. Cheap; the work is done by tracker_work(). */
void tracker_on_event(struct tracker *t, const struct ht_event *event);
void tracker_on_mmap(struct tracker *t, pid_t pid);
void tracker_on_code(struct tracker *t, pid_t pid); /* it made memory without a file executable */
void tracker_on_lost(struct tracker *t);
/* Work off what events asked for: of the next processes in turn, for 0.2 s and the last one's time. Call again
 * when tracker_wants_work() says so. */
int tracker_work(struct tracker *t);
bool tracker_wants_work(const struct tracker *t);
/* How long it may be until then, at the most. */
int tracker_wait_ms(const struct tracker *t);

/* Read what running processes count themselves (scope_counters), and the names of label keys that
 * they published meanwhile. To be called now and then. */
void tracker_read_counters(struct tracker *t);

/* Processes that were tracked, of them those that are no more. */
uint64_t tracker_followed_cnt(const struct tracker *t);
uint64_t tracker_ended_cnt(const struct tracker *t);
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

/* What is probed, for probes_file_at(). */
const struct probes *tracker_probes(const struct tracker *t);

const struct track_instance *tracker_instances(const struct tracker *t, size_t *ret_cnt);
/* Has the process executed another program since? Then nothing that the image held is in use. */
bool tracker_is_replaced(const struct tracker *t, pid_t pid, uint32_t generation);
const struct track_instance *tracker_find_instance(const struct tracker *t, pid_t pid,
						   uint32_t generation);

/* What is held stays as it is from here on; the allocation probes are taken out... */
void tracker_stop_allocs(struct tracker *t);
/* ... and then the rest. */
void tracker_stop(struct tracker *t);

#endif
