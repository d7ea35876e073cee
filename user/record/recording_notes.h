/* SPDX-License-Identifier: MIT */
/*
 * recording_notes.h - how a profile was made: its struct recording for reports, and its comments
 * for people who read it with any tool.
 *
 *	heaptap 1.0.0: record -p 14662
 *	target: PID 14662 (server) /usr/bin/server
 *	recorded: 20.0 s until the time was up, since attach (what was allocated before is not included)
 *	source: uprobe (session), 9 sites; one sample per 64.0 KiB allocated
 *	...                                     what it cost: see track/governor_text.c
 *	resident: 9.50 MiB -> 13.4 MiB
 *	resident by row: live 7.20 -> 11.1 MiB, files 2.30 -> 2.30 MiB
 *						(serve: by row, read 42.0 s before the end: ...)
 *	counters: alloc_hits=90123 ...          see below, with a line for each loss
 *
 * Expected facts (frees are watched, nothing was lost) have no line, because `go tool pprof -top`
 * prints all comments before its table.
 */
#ifndef HT_RECORD_RECORDING_NOTES_H
#define HT_RECORD_RECORDING_NOTES_H

#include "base/std.h"
#include "heaptap/abi.h"
#include "kernel/attach.h"
#include "profile/recording.h"
#include "track/instances.h"

struct governor;
struct governor_record;
struct profile;
struct resident_reading;
struct snapshot;
struct snapshot_held;
struct tracker;

struct recording_facts {
	char *const *command_argv;
	int command_argc;
	const struct tracker *tracker;
	const struct governor *governor;
	/* Is the profile of this image of the tracker? NULL: of all images. */
	bool (*is_wanted)(const void *ctx, pid_t pid, uint32_t generation);
	const void *ctx;
	pid_t main_pid; /* 0: no main process */
	/* What the budget did to a process that may be over; NULL: use the present state. */
	const struct governor_record *budget;
	const char *reason; /* why it was saved; NULL: on demand */
	const char *end_reason; /* why the recording ended; NULL: the profile was asked for */
	bool was_started; /* by heaptap */
	bool follows_children; /* children of main_pid */
	bool is_merged; /* of processes with budgets of their own */
	char *const *program_argv; /* of the program that was started, or NULL */
	bool is_over; /* the process has ended, so it cannot be recorded again */
	bool is_delta; /* alloc_* values count since begin_ns, in-use values all that is known */
	int64_t followed_ns, begin_ns, end_ns; /* since the epoch */
	uint64_t duration_ns;
	int64_t peak_ns; /* since begin_ns; 0: not known */
	uint32_t unrecorded_cnt; /* children */
	uint64_t rss_begin_bytes, rss_end_bytes; /* 0: not known */
	int64_t rss_file_growth_bytes;
	/* Resident memory by row at both times; NULL: it was not looked at. */
	const struct resident_reading *rows_begin, *rows_end;
	uint64_t rows_age_ns; /* of the second, when the profile is made; 0: it is of the end */
	const struct snapshot_held *exec_held; /* see snapshot_part_replaced() */
	size_t exec_held_cnt;
	enum attach_mode mode;
	bool says_sites; /* say the number of the tracker's sites */
	uint64_t rate_bytes;
	const uint64_t *stats; /* HT_STAT_CNT counters */
};

/*
 * Fill p->recording, add the comments, and make allocated the default type if nothing is known of
 * in-use. Before, p has only what its samples are.
 */
int recording_notes_add(const struct recording_facts *f, struct profile *p);

/* After these notes: what is missing in pinned_space, or why there is none. rows: as read for it. */
int pinned_notes_add(const struct snapshot *s, const struct resident_reading *rows,
		     struct profile *p);

/*
 * Say what is known of one process's in-use, and how to know more: "Tracking frees costs 53 % of
 * its CPU time; ..."; "" if in-use covers all allocations. is_over: it cannot be recorded any more.
 * Returns buf.
 */
#define RECORDING_INUSE_BUF (2 * RECORDING_TEXT_BUF + 32)
char *recording_inuse_words(const struct recording *r, const char *comm, uint64_t rate_bytes,
			    bool is_over, char buf[RECORDING_INUSE_BUF]);

/*
 * ledger_notes.c: what was done and what was lost, by name, as comments of a profile: the counters
 * of the BPF object and those kept elsewhere.
 */

enum ledger_kind {
	LEDGER_ACTIVITY, /* nothing was lost */
	LEDGER_LOSS, /* all sums are right in spite of it */
	LEDGER_SUM, /* a sum, of in use or allocated, is wrong by it */
};

struct ledger_line {
	enum ledger_kind kind;
	const char *name, *meaning;
	uint64_t value;
};

/* Beside the counters of BPF: sites that are not probed, and counters of the programs themselves. */
#define LEDGER_MORE_CNT 9
#define LEDGER_LINE_CNT (HT_STAT_CNT + LEDGER_MORE_CNT)
struct ledger_lines {
	struct ledger_line line[LEDGER_LINE_CNT]; /* counters of BPF first */
	/* the file whose calls were left out as an allocator's own, and are not; NULL: none */
	const char *misjudged_path;
	bool is_of_all; /* the profile is of some processes, and the counters are of all that are followed */
};

/* Read the counters, for everything that t has followed; NULL: only the counters of BPF. */
void ledger_lines_read(struct ledger_lines *l, const uint64_t stats[HT_STAT_CNT],
		       const struct tracker *t);
/* What is counted for each image: of one profile, in place of what was read for all. */
struct image_losses {
	size_t unseen_exec_cnt; /* images that ran unseen after an exec */
	size_t unseen_allocator_cnt,
		late_file_cnt; /* files whose allocator is not seen, or was probed late */
	struct scope_counters scopes;
};
void image_losses_add(struct image_losses *sum, const struct track_instance *inst);
void ledger_lines_set(struct ledger_lines *l, const struct image_losses *losses);
/* Does some sum lack something? Then no number is exact. */
bool ledger_lines_are_lossy(const struct ledger_lines *l);
/*
 * Add one line of activities, "counters: NAME=VALUE ...", and a line for each loss, "ledger: NAME
 * VALUE (MEANING)". Zeros are left out.
 */
int ledger_notes_add(struct profile *p, const struct ledger_lines *l);

#endif
