/* SPDX-License-Identifier: MIT */
/*
 * scope_notes.h - adds peaks of scopes, and tasks, as notes of a profile (profile/scope_note.h).
 */
#ifndef HT_SNAPSHOT_SCOPE_NOTES_H
#define HT_SNAPSHOT_SCOPE_NOTES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct engine;
struct profile;
struct snapshot;
struct tracker;

struct scope_notes_options {
	unsigned labels; /* LABEL_* of scope_labels.h: what the profile keeps apart */
	pid_t only_pid; /* 0: all processes */
	bool by_process; /* keep equal paths of several processes apart */
	int64_t epoch_off_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
};

/* Maximum notes of each kind, the largest ones. A comment says how many are left out. */
#define SCOPE_NOTES_CAP 1000

int scope_notes_add(const struct snapshot *s, struct engine *e, const struct tracker *t,
		    const struct scope_notes_options *opts, struct profile *p);

#endif
