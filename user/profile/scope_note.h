/* SPDX-License-Identifier: MIT */
/*
 * scope_note.h - facts about scopes that the samples of a profile cannot carry. In a file a note is a text:
 *
 *	scope_peak: bytes=N time=2026-11-21T22:01:02.123Z [scope_cnt=N] [pid=N] scope=Top/A/B
 *	instance: task=N state=live|exited inuse_bytes=N inuse_objects=N alloc_bytes=N alloc_objects=N
 *		alloc_samples=N alloc_error=N peak_bytes=N peak_time=... [pid=N] scope=Top/conn        (on one line)
 *
 * A scope's peak is the most that it and all scopes below it ever held together; with scope_cnt the path is several
 * scopes (below different labels), and it is the largest of theirs. What an instance (a task of a scope)
 * holds is in its samples; what it allocated is in samples without a task, so only its note tells that apart. The path
 * comes last and runs to the end of the line. Unknown keys are skipped. There may be thousands of notes: so they are
 * not comments, which people read.
 */
#ifndef HT_PROFILE_SCOPE_NOTE_H
#define HT_PROFILE_SCOPE_NOTE_H

#include "base/std.h"

enum scope_note_kind { SCOPE_NOTE_PEAK, SCOPE_NOTE_INSTANCE };

struct scope_note {
	enum scope_note_kind kind;
	int64_t path_str; /* in the profile */
	int64_t pid; /* 0 = not said */
	int64_t peak_bytes;
	int64_t peak_time_ns; /* since the epoch; 0 = not said */
	int64_t scope_cnt; /* scopes that the path is; 0 = not said: one */
	/* of an instance */
	int64_t task;
	bool is_exited;
	int64_t inuse_bytes, inuse_objects, alloc_bytes, alloc_objects;
	int64_t alloc_samples;
	int64_t alloc_error; /* standard error of alloc_bytes; -1 = not said */
};

/* The text of a note for this path; the caller frees it. NULL: no memory. */
char *scope_note_text(const struct scope_note *note, const char *path);
/* Fill all except path_str; the path is in the text. false: another kind of note, or damaged. */
bool scope_note_parse(const char *text, struct scope_note *ret, const char **ret_path);

#endif
