/* SPDX-License-Identifier: MIT */
/*
 * recorder.h - one recording: open (checks only), start (attach), run (until it ends), then the final snapshot is
 * there.
 *
 * The recorder itself reports on stderr what it does and why it fails: callers only pass the error on.
 */
#ifndef HT_RECORD_RECORDER_H
#define HT_RECORD_RECORDER_H

#include "base/std.h"
#include "kernel/attach.h"
#include "profile/recording.h"
#include "track/policy.h"

struct history;
struct recorder;
struct resident_reading;
struct session;
struct snapshot;
struct targets;

/* A guest that looks on in the loop of a running recording. */
struct recorder_guest {
	int fd; /* readable: calls on_tick() at once; it is called several times a second anyhow */
	void (*on_tick)(void *ctx, struct recorder *r);
	void *ctx;
};

struct recorder_options {
	const pid_t *pids; /* the named ones first; the others may turn out to be gone or unfit */
	size_t pid_cnt, named_cnt; /* both 0: argv is started */
	char *const *argv;
	uint64_t duration_ns; /* 0: until SIGINT, SIGTERM or the end of the process */
	uint64_t rate_bytes;
	uint32_t live_cap, stack_cap;
	enum attach_mode mode;
	enum probes_source source;
	enum tap_wish tap; /* TAP_STARTED has no effect here: nothing is tapped */
	bool rate_is_fixed; /* else it follows the cost: track/governor.c, track/taps.c */
	bool realloc_keeps_scope; /* false: a realloc charges the current scope */
	bool follow;
	bool no_hold; /* a started program does not wait at an exec: see record/recorder_priv.h */
	struct alloc_options alloc; /* how functions are probed; see struct track_policy */
	bool jvm_perfmap; /* ask JVMs for the names of their code */
	bool is_quiet;
	struct recording_limit max_overhead;
	int stdout_fd; /* the profile goes there; ends when its reader is gone; -1: to a file */
	const struct recorder_guest *guest; /* NULL: none */
	bool refreshes_rows; /* for a guest: the last reading is made again and again, and its end is not waited for */
};

struct recorder_facts {
	const struct snapshot *snapshot;
	const struct history *history; /* of what was in use; NULL: none was kept */
	pid_t pid; /* the first of several */
	uint32_t unrecorded_cnt; /* children that were not recorded */
	bool was_started; /* by us: nothing was allocated before the recording */
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
	int64_t begin_epoch_ns, end_epoch_ns;
	uint64_t rate_bytes;
	enum probes_source source;
	enum attach_mode mode;
	size_t site_cnt, failed_cnt;
	const char *failed_why;
	/* Resident memory, summed over the processes attached to: before that (0: of a program that we started),
	 * and when each was last seen; 0: not known. */
	uint64_t rss_begin_bytes, rss_bytes;
	int64_t rss_file_growth_bytes; /* of the pages of files in it */
	int exit_status; /* of a started program, as of waitpid(2); -1: still runs */
	const char *end_reason;
	bool is_cut_short; /* by the user or a fault, before the time was up or the process ended */
	bool follow;
	uint32_t live_cap;
	bool probes_went_out; /* at some time, to keep the overhead limit */
	/* Resident memory by row; NULL: not asked for. */
	const struct resident_reading *rows_begin, *rows_end;
	const struct target *rows_of; /* this one of several processes; NULL: there is one */
};

/* Check the targets, the kernel and the privileges; attach nothing, start nothing visible. */
int recorder_open(const struct recorder_options *opts, struct recorder **ret);
const struct targets *recorder_targets(const struct recorder *r);
int recorder_start(struct recorder *r);
/* Until the end, which an error may bring about early. 0: what was recorded was read. */
int recorder_run(struct recorder *r);
/* The error that ended it early, which was logged, or 0. The recording is right as far as it goes. */
int recorder_error(const struct recorder *r);
/* Of a started program, as of waitpid(2), also if it ended after the recording; -1: it still runs. */
int recorder_program_status(struct recorder *r);
/* For a guest: end the recording when on_tick() returns. */
void recorder_end(struct recorder *r, const char *reason);
/*
 * For a guest, in a child forked for it: take the snapshot as if the recording had ended now. The recording cannot
 * go on in that child.
 */
int recorder_peek(struct recorder *r);
void recorder_close(struct recorder *r);

/* Valid after recorder_run() or recorder_peek(). */
void recorder_facts(const struct recorder *r, struct recorder_facts *ret);
const struct session *recorder_session(const struct recorder *r);

#endif
