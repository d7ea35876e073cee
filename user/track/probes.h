/* SPDX-License-Identifier: MIT */
/*
 * probes.h - the probes of the files that tracked processes map, each file with the sharing that costs
 * its processes least (plan.h).
 *
 * A file's frees are probed before its allocations, so that no allocation is seen whose free could be
 * missed. When processes come and go its probes may move to another sharing (file_sharing.c).
 */
#ifndef HT_TRACK_PROBES_H
#define HT_TRACK_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "track/plan.h"
#include "track/probes_kept.h"

struct engine;
struct guardian;
struct held_links;
struct leftovers;
struct probes;
struct probes_activity;
struct track_file;

/* Where samples of a process come from. */
enum probes_source {
	/* The probes of its allocator, until a sampler of its own that sees all of it tells of a sample. */
	SOURCE_AUTO,
	SOURCE_PROBES, /* those of its allocator */
	SOURCE_USDT, /* samplers of its own, whatever they see */
};
extern const char *const probes_source_names[]; /* by number; ends with NULL */

/* May allocators be tapped (tap/tap.h)? */
enum tap_wish {
	TAP_NEVER,
	TAP_IF_POSSIBLE, /* else they are probed */
	TAP_ONLY,
};
extern const char *const tap_wish_names[]; /* by number; ends with NULL */
struct probes_options {
	struct guardian *guardian;
	bool is_shared; /* one set of probes for every process that maps the file, for good */
	bool probe_throwing; /* see tracker_options */
	bool is_all_agreed; /* the planner may choose SHARING_ALL */
	enum probes_source source;
	uint64_t tap_rate_bytes;
	enum sharing wanted; /* SHARING_AUTO, or the one that is taken wherever it is possible */
	bool has_events; /* SHARING_EVENT. The guardian has opened them, the engine has the programs. */
	struct plan_costs costs;
};

/* What was attached so far; a site counts once for each process that it was probed in. */
struct probes_counts {
	size_t site_cnt;
	size_t stepped_cnt; /* of them: cost a single-step */
	size_t throwing_cnt; /* left alone because they may throw */
	size_t failed_cnt; /* could not be attached */
	int failed_err; /* why the first of them could not; 0: none */
};

int probes_new(struct engine *e, const struct probes_options *opts, struct probes **ret);
/* Takes every probe out. */
void probes_free(struct probes *p);

/*
 * A process maps the file: probe it there, if it is worth it and not done yet. live_tid: a thread of
 * the process that runs. 0, also when the probes could not be had (that is counted); -ENOMEM.
 */
int probes_add(struct probes *p, const struct track_file *file, pid_t pid, pid_t live_tid);
/* The process is tracked no longer. Has it ended, its probes go without a wait here. */
void probes_del_process(struct probes *p, pid_t pid, bool has_ended);

/* No tracked process maps the file any more, and it is not known any longer. */
void probes_forget_file(struct probes *p, const struct track_file *file);
/* From now on; files move with the next probes_work(). */
void probes_set_all_agreed(struct probes *p, bool is_all_agreed);

/* Is a file probed through an event that processes share? */
bool probes_share_events(const struct probes *p);
/* Brings to the front of such files who hits most, a process at a time. To be called now and then. */
void probes_order(struct probes *p, const struct probes_activity *a);

/* Takes the next step of moves. To be called again soon while probes_are_moving(). */
void probes_work(struct probes *p);
bool probes_are_moving(const struct probes *p);

/*
 * Put in what is missing and take out what is not kept, now and for files that are mapped later. What goes
 * is out when guardian_is_out() says so of the ticket. pid is ignored where probes are shared.
 */
int probes_keep(struct probes *p, pid_t pid, pid_t live_tid, enum probes_kept kept,
		uint64_t *ret_ticket);
/* Its own sampler has told of a sample: its allocator's probes go, also in files that it maps later. Or it is
 * another program now, and they come. */
int probes_set_sampled(struct probes *p, pid_t pid, pid_t live_tid, bool is_sampled);
/*
 * Taps the file's allocator in the process (tap/tap.h). *ret_news is valid until the next call: how that went; NULL: it
 * was tapped before. -errno: it is not, and why is in the news.
 */
struct tap_lost;
struct tap_news;
int probes_tap(struct probes *p, const struct track_file *file, pid_t pid,
	       const struct tap_news **ret_news);
/* Of all its files: it executes another program, or one of them could not be. */
void probes_untap(struct probes *p, pid_t pid);
/* The rate of its taps from now on, 0: as it is; and what they have lost. */
void probes_set_taps(const struct probes *p, pid_t pid, uint64_t rate_bytes, struct tap_lost *ret);
/* Is what the sampler of this file tells read? */
bool probes_use_sampler(const struct probes *p, const struct track_file *file);
/* While held, processes that are new get no probes: as if they kept PROBES_NONE. */
void probes_hold(struct probes *p, bool hold);

/* -EMFILE, -ENFILE: some probes of the process could not be had because descriptors ran out, which says
 * nothing about its files. */
int probes_want_of_files(const struct probes *p, pid_t pid);

/* The process has forked a child that nobody follows: take the breakpoints that it inherited out of
 * it, soon. (perf events do that by themselves.) False: not now, so much of it is under way. */
bool probes_clean_children(struct probes *p, pid_t pid);

/* Of a process that has just come to be tracked. What cannot be done is said. */
void probes_clean_leftovers(struct probes *p, const struct leftovers *l, pid_t pid, pid_t live_tid);

void probes_stop_allocs(struct probes *p);
void probes_stop(struct probes *p);

const struct probes_counts *probes_counts(const struct probes *p);

/* A file with an allocator that is probed now. */
struct probes_file {
	const struct track_file *file;
	enum sharing sharing;
	size_t process_cnt;
	double hit_ns; /* what a process pays for a hit, as plan_hit_ns() says */
};
size_t probes_file_cnt(const struct probes *p);
/* false: it has no allocator, or no process. */
bool probes_file_at(const struct probes *p, size_t i, struct probes_file *ret);

#endif
