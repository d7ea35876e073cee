/* SPDX-License-Identifier: MIT */
/*
 * ledger_notes.h - what was done and what was lost, by name: the counters of the BPF object, and what
 * is counted elsewhere; as comments of a profile.
 */
#ifndef HT_SNAPSHOT_LEDGER_NOTES_H
#define HT_SNAPSHOT_LEDGER_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heaptap/abi.h"

struct profile;
struct tracker;

enum ledger_kind {
	LEDGER_ACTIVITY, /* nothing was lost */
	LEDGER_LOSS, /* all sums are right nevertheless */
	LEDGER_SUM, /* what is in use or was allocated is wrong by it */
};

struct ledger_line {
	enum ledger_kind kind;
	const char *name, *meaning;
	uint64_t value;
};

/* Beside the counters of BPF: sites that are not probed, and what programs count themselves. */
#define LEDGER_MORE_CNT 6
#define LEDGER_LINE_CNT (HT_STAT_CNT + LEDGER_MORE_CNT)
struct ledger_lines {
	struct ledger_line line[LEDGER_LINE_CNT]; /* the counters of BPF first */
};

/* Of everything that t has followed; NULL: of the counters of BPF alone. */
void ledger_lines_read(struct ledger_lines *l, const uint64_t stats[HT_STAT_CNT],
		       const struct tracker *t);
/* Programs that ran unseen after an exec, for those of one profile only. */
void ledger_lines_set_unseen_execs(struct ledger_lines *l, uint64_t cnt);
/* Some sum lacks something: no number is exact. */
bool ledger_lines_are_lossy(const struct ledger_lines *l);
/*
 * One line with all that was done, "counters: NAME=VALUE ...", and one for each loss, "ledger: NAME VALUE
 * (MEANING)". What is 0 is left out.
 */
int ledger_notes_add(struct profile *p, const struct ledger_lines *l);

#endif
