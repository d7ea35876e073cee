/* SPDX-License-Identifier: MIT */
/*
 * scope_labels.h - what a sample is for, as text: the path of its scope, and its labels.
 *
 * The shown path has the names of TAG, TASK and OTHER nodes, separated by '/' (in a name it is
 * "\/"). LABEL nodes, and labels of other formats, are labels beside the path; of each key the
 * innermost.
 */
#ifndef HT_RECORD_SCOPE_LABELS_H
#define HT_RECORD_SCOPE_LABELS_H

#include "base/std.h"
#include "profile/profile.h"

struct engine;
struct scope_labels;
struct snapshot;
struct snapshot_row;
struct tracker;

#define SCOPE_TEXT_UNREADABLE "(unreadable)"
#define SCOPE_TEXT_OTHER "(other)"

/* Which of these go into the profile. */
#define LABEL_SCOPE 0x1 /* the path */
#define LABEL_APP 0x2 /* LABEL nodes and labels of other formats */
#define LABEL_TASK 0x4 /* numbers of tasks */
#define LABEL_THREAD 0x8
#define LABEL_ALL 0xf

struct row_labels {
	int64_t scope_str; /* 0: none */
	const struct profile_label *labels; /* labels of the program, distinct keys */
	size_t label_cnt;
	uint32_t set; /* number of {scope_str, labels}: equal sets have equal numbers */
	uint32_t task_slot; /* 0: the scope is not in a task */
};

/* Keeps references to all arguments. wanted: LABEL_*. */
int scope_labels_new(const struct snapshot *s, struct engine *e, const struct tracker *t,
		     struct profile *p, unsigned wanted, struct scope_labels **ret);
void scope_labels_free(struct scope_labels *sl);
/* Valid until the next call. */
int scope_labels_of(struct scope_labels *sl, const struct snapshot_row *row,
		    struct row_labels *ret);

/* Peaks of scopes, and tasks, as notes of a profile (profile/scope_note.h). */

struct scope_notes_options {
	unsigned labels; /* LABEL_*: what the profile keeps apart */
	pid_t only_pid; /* 0: all processes */
	bool by_process; /* keep equal paths of several processes apart */
	int64_t epoch_off_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
};

/* Maximum notes of each kind, the largest ones. A comment says how many are left out. */
#define SCOPE_NOTES_CAP 1000

int scope_notes_add(const struct snapshot *s, struct engine *e, const struct tracker *t,
		    const struct scope_notes_options *opts, struct profile *p);

#endif
