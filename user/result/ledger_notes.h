/* SPDX-License-Identifier: MIT */
/*
 * ledger_notes.h - what was done and what was lost, by name, as comments of a profile: the counters
 * of the BPF object and those kept elsewhere.
 */
#ifndef HT_RESULT_LEDGER_NOTES_H
#define HT_RESULT_LEDGER_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heaptap/abi.h"

struct profile;
struct scope_counters;
struct tracker;

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
/* Set the number of programs that ran unseen after an exec, for one profile only. */
void ledger_lines_set_unseen_execs(struct ledger_lines *l, uint64_t cnt);
/* Likewise the number of files with an allocator that is not seen, and of those that were probed late. */
void ledger_lines_set_unseen_allocators(struct ledger_lines *l, uint64_t cnt, uint64_t late_cnt);
/* Likewise what the programs of one profile counted of their scopes. */
void ledger_lines_set_scopes(struct ledger_lines *l, const struct scope_counters *scopes);
/* Does some sum lack something? Then no number is exact. */
bool ledger_lines_are_lossy(const struct ledger_lines *l);
/*
 * Add one line of activities, "counters: NAME=VALUE ...", and a line for each loss, "ledger: NAME
 * VALUE (MEANING)". Zeros are left out.
 */
int ledger_notes_add(struct profile *p, const struct ledger_lines *l);

#endif
