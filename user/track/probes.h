/* SPDX-License-Identifier: MIT */
/*
 * probes.h - the probes of all files that tracked processes map, each file with the sharing that
 * costs its processes least (plan.c).
 *
 * A file's frees are probed before its allocations, so that no allocation is seen whose free could
 * be missed. When processes come and go, its probes may move to another sharing (file_probes.c).
 */
#ifndef HT_TRACK_PROBES_H
#define HT_TRACK_PROBES_H

#include "base/std.h"
#include "base/err.h"
#include "base/vec.h"
#include "kernel/attach.h"
#include "track/policy.h"

struct engine;
struct guardian;
struct proc_map;
struct probes;
struct tap_lost;
struct track_file;

/* Which probes of a process stay attached. */
enum probes_kept {
	PROBES_ALL,
	PROBES_ALLOCS, /* not those on frees */
	PROBES_NONE,
};

/* What was attached so far. A site counts once for each process in which it was probed. */
struct probes_counts {
	size_t site_cnt;
	size_t stepped_cnt; /* of these: cost a single-step */
	size_t throwing_cnt; /* left alone because they may throw */
	size_t failed_cnt; /* could not be attached */
	int failed_err; /* error of the first; 0: none */
};

/* How tapping went the last time. */
struct tap_news {
	uint64_t stopped_ns;
	uint32_t thread_cnt;
	struct err why; /* why it failed */
};

/* Recent hits per second of a process. */
struct probes_activity {
	double (*hits_per_s)(void *ctx, pid_t pid);
	void *ctx;
};

/* All arguments must outlive it. -ENOMEM. */
int probes_new(struct engine *e, struct guardian *guardian, const struct track_policy *policy,
	       struct probes **ret);
/* Detach all probes. */
void probes_free(struct probes *p);

/*
 * A process maps the file: probe it there, if useful and not done yet. live_tid: a running thread
 * of the process. 0, also when attaching failed (it is counted); -ENOMEM.
 */
int probes_add(struct probes *p, const struct track_file *file, pid_t pid, pid_t live_tid);
/* The process is no longer tracked. has_ended: its probes go later, without a wait here. */
void probes_del_process(struct probes *p, pid_t pid, bool has_ended);

/* No tracked process maps the file any more, and it is being forgotten. */
void probes_forget_file(struct probes *p, const struct track_file *file);
/* The policy has changed: files move with the next probes_work(). */
void probes_plan_anew(struct probes *p);

/* Is a file probed through an event that processes share? */
bool probes_share_events(const struct probes *p);
/* In each such file, bring the process with the most hits to the front, one process per call. Call now and then. */
void probes_order(struct probes *p, const struct probes_activity *a);

/* Take the next step of all moves. Call again soon while probes_are_moving(). */
void probes_work(struct probes *p);
bool probes_are_moving(const struct probes *p);

/*
 * Attach what is to be kept and is missing, detach the rest; also in files that are mapped later.
 * Detaching is done when guardian_is_detached() says so of the ticket. pid is ignored where probes are
 * shared.
 */
int probes_keep(struct probes *p, pid_t pid, pid_t live_tid, enum probes_kept kept,
		uint64_t *ret_ticket);
/* Where probes are shared, one setting for all processes, whichever pid is asked for. */
enum probes_kept probes_kept_of(const struct probes *p, pid_t pid);
/* true: the process's own sampler has reported a sample; detach its allocator's probes, also in
 * files that it maps later. false: it executes another program now; attach them again. */
int probes_set_sampled(struct probes *p, pid_t pid, pid_t live_tid, bool is_sampled);
/*
 * Tap the file's allocator in the process (tap/tap.h). *ret_news: how it went, valid until the next
 * call; NULL: it was already tapped. has_new_maps: it may map more copies of the file than when it was
 * tapped. -errno: it is not tapped; the news say why.
 */
int probes_tap(struct probes *p, const struct track_file *file, pid_t pid, bool has_new_maps,
	       const struct tap_news **ret_news);
/* The taps that are put in from now on begin with the blocks of this file (struct tap_seeds). -1: with none. */
void probes_seed_taps(struct probes *p, int seeds_fd);
/* Is there one set of probes for every process that maps a file, also when other sharings would be cheaper? */
bool probes_are_shared(const struct probes *p);
/* From now on there is not: those of everyone are detached, and each process needs its own (probes_keep()). */
void probes_unshare(struct probes *p);
/* Remove the taps of all its files: it executes another program, or one file could not be tapped. */
void probes_untap(struct probes *p, pid_t pid);
/* Set the rate of its taps (0: unchanged), and return what they have lost. */
void probes_set_taps(const struct probes *p, pid_t pid, uint64_t rate_bytes, struct tap_lost *ret);
/* Are the reports of this file's sampler read? */
bool probes_use_sampler(const struct probes *p, const struct track_file *file);
/* While paused, new processes get no probes, as with PROBES_NONE. */
void probes_pause_attaching(struct probes *p, bool pause);

/* -EMFILE, -ENFILE: some probes of the process could not be attached because descriptors ran out,
 * which says nothing about its files. */
int probes_fd_error(const struct probes *p, pid_t pid);
/* Since when what the process allocates through the file is seen; 0: never so far, or the file has no allocator. */
uint64_t probes_seen_ns(const struct probes *p, const struct track_file *file, pid_t pid);

/* The process has forked a child that is not followed: soon take the inherited breakpoints out of
 * the child. (perf events do that by themselves.) false: not now, too many cleanings are under
 * way. */
bool probes_clean_children(struct probes *p, pid_t pid);

/*
 * Breakpoints in a process that are not in its file: those of a profiler that runs now, or those left by one that was
 * killed in the middle of an attach or detach.
 *
 * The two look the same. Attaching at their sites and detaching again takes leftovers out, in every
 * process, and leaves others' live breakpoints alone (guardian_clean()).
 */
struct leftovers {
	const struct track_file *file;
	VEC(struct attach_site) sites; /* with cookie 0: their hits do nothing */
};
/*
 * Search the functions that a profiler would probe (the allocator's, whole, and the places of
 * tags), as far as they are in this mapping, in the memory of the process of the thread tid.
 * What is beside other changed bytes belongs to a patch of somebody else and is left alone.
 * Unreadable memory has no leftovers. -ENOMEM.
 */
int leftovers_find(struct reader *reader, pid_t tid, const struct proc_map *map,
		   const struct track_file *file, struct leftovers *ret);
/* For a process that is newly tracked. Failures are logged. */
void probes_clean_leftovers(struct probes *p, const struct leftovers *l, pid_t pid, pid_t live_tid);

void probes_stop_allocs(struct probes *p);
void probes_stop(struct probes *p);

const struct probes_counts *probes_counts(const struct probes *p);

/* A probed file that has an allocator. */
struct probes_file {
	const struct track_file *file;
	enum sharing sharing;
	size_t process_cnt;
	double hit_ns; /* expected cost per hit for a process: plan_hit_ns() */
};
/* Each such file that a process maps: begin with 0 in *i. false: there are no more. */
bool probes_next_file(const struct probes *p, size_t *i, struct probes_file *ret);

#endif
