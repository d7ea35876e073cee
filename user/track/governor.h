/* SPDX-License-Identifier: MIT */
/*
 * governor.h - keeps the followed processes within their overhead budget.
 *
 * Reads the cost of each process's probes, asks the controller (budget.h) what to give up, does
 * that, tells the user, and keeps it for profiles and metrics. Called from the event loop.
 */
#ifndef HT_TRACK_GOVERNOR_H
#define HT_TRACK_GOVERNOR_H

#include "base/std.h"
#include "track/budget.h"
#include "profile/recording.h"

struct engine;
struct governor;
struct profile;
struct tracker;

/* governor_record.c: the budget of one process: its present state, its totals, and the steps taken. */

struct governor_step {
	pid_t pid; /* with several processes, the first one's */
	char *const *program_argv; /* of a program that was started for the recording, or NULL */
	bool follows_children; /* of a recording with --follow */
	uint64_t after_ns; /* since the process is followed */
	struct budget_plan from, plan; /* before, and from here on */
	bool is_tap; /* instead of the plan: the tap takes over from the probes, whose price is verdict.before */
	bool is_tap_refused; /* no advice to use it */
	uint64_t rate_bytes, base_rate_bytes; /* from here on, and that of BUDGET_FULL */
	struct budget_verdict verdict;
};

/* The first step and the last ones. */
#define GOVERNOR_HISTORY_CAP 8
struct governor_history {
	struct governor_step step[GOVERNOR_HISTORY_CAP];
	size_t cnt; /* in `step` */
	size_t step_cnt; /* in all */
};

struct governor_view {
	enum budget_step step;
	struct budget_price now; /* cost of probes in the last seconds */
	struct budget_price overall; /* since it is followed; NAN: not known */
	struct budget_price settled; /* since the first 4 s; NAN: not known */
	double cpu_ns; /* used since it is followed */
	struct budget_price full; /* cost of recording everything; NAN: this is done, or unknown */
	struct recording_limit limit; /* in force: one of the two is 0 */
	uint64_t rate_bytes;
	size_t step_cnt; /* taken so far */
	uint64_t inuse_ns; /* in-use counts blocks allocated since then; 0: since it is followed */
	bool has_inuse; /* frees are seen now */
	uint64_t watched_ns; /* time in which allocations were seen */
	bool was_always_recorded;
};

/* What a profile's comments say of one process, for a profile that is made after it has ended, or
 * executed another program. */
struct governor_record {
	bool is_known;
	struct governor_view view;
	struct governor_history history;
	uint64_t followed_ns;
	pid_t pid; /* 0: all, with is_one */
};

/* A recording is short, and its user sees the cost; a daemon stays. */
#define GOVERNOR_RECORD_LIMIT ((struct recording_limit){ 0.25, 0.25 })
#define GOVERNOR_SERVE_DEFAULT_PERCENT 5
/*
 * Of programs that are started. Probes first: sqlite3, cc1plus, python3, node, git gc and ffmpeg, three runs each, all had a known
 * heap in use, and the bytes allocated with --rate 1 were within the 95 % interval of 16 of these 18. A tap from the
 * beginning: of 14 of 15, at 0.3 s to 0.8 s of processor time less in sqlite3 and node, but too late for each of the short
 * processes of git gc, of whose 7.7 MB it saw nothing.
 */
#define GOVERNOR_TAP_SHARE 0.1 /* the tap costs some percent at most */
#define GOVERNOR_FLOOR 0.01 /* of one CPU, the least limit that a percentage gives */
#define GOVERNOR_HOST_DEFAULT_PERCENT 2

struct governor_options {
	const char *command; /* for messages: "record", "serve" */
	struct recording_limit limit; /* of each process */
	double max_host_share; /* of all CPUs, for all processes together; 0: no limit */
	uint64_t rate_bytes; /* 0: auto_rate_update() */
	struct budget_costs costs;
	char *const *program_argv; /* of a program that was started for the recording, or NULL */
	/* Where tracker_tap() may: tap what costs more than this share of its CPU time. 0: tap only instead of giving up
	 * frees. */
	double tap_share;
	bool keeps_ended; /* keep the data of ended processes */
	bool is_one; /* all processes of the tracker are one unit: they share their probes */
};

/* is_strict: without GOVERNOR_FLOOR. 0 percent: no limit. */
struct recording_limit governor_limit(double percent, bool is_strict);

/* Also makes the engine's sampling tables from number 1 on, still without a limit for throwing functions. */
int governor_new(struct engine *e, struct tracker *t, const struct governor_options *opts,
		 struct governor **ret);
void governor_free(struct governor *g);

/* Change the limits, as in governor_options. */
void governor_set_limits(struct governor *g, const struct recording_limit *limit,
			 double max_host_share);

/* Do what is due; call at least when governor_wait_ms() says so. */
int governor_work(struct governor *g);
int governor_wait_ms(const struct governor *g);

/* Detach all probes, and attach none until called with false. */
int governor_pause(struct governor *g, bool pause);
bool governor_is_paused(const struct governor *g);
/* This process was stopped, and its probes were taken out meanwhile: attach them again. who: for the message. */
void governor_resume_after_stop(struct governor *g, const char *who);
/* Take no more steps: the tracker is about to stop. The data stays. */
void governor_stop(struct governor *g);
/* The tracker has stopped: count what its probes took until they were out. */
void governor_end(struct governor *g);

/* -ENOENT: not followed. With is_one every pid is the same. */
int governor_view(const struct governor *g, pid_t pid, struct governor_view *ret);
/* Average bytes per sample so far, disregarding coarser steps. */
uint64_t governor_rate_bytes(const struct governor *g);
/* Share of the time of all CPUs that probes take. */
double governor_host_share(const struct governor *g);

/* Add comments on the budget, the steps and their effect on values. pid 0: for all processes. */
int governor_comment(const struct governor *g, pid_t pid, struct profile *p);

void governor_take_record(const struct governor *g, pid_t pid, struct governor_record *ret);
int governor_comment_record(const struct governor_record *r, struct profile *p);

/*
 * The same as fields: overhead, full, limit, inuse, inuse_since_ns, watched_ns (set duration_ns
 * before). epoch_off_ns: from CLOCK_MONOTONIC to ns since the epoch. pid 0: for all processes; if
 * in-use is known of some of them only, it is called known, and is_lossy is set.
 */
void governor_fill_recording(const struct governor *g, pid_t pid, int64_t epoch_off_ns,
			     struct recording *r);
void governor_fill_recording_of(const struct governor_record *of, int64_t epoch_off_ns,
				struct recording *r);

#endif
