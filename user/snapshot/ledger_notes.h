/* SPDX-License-Identifier: MIT */
/* ledger_notes.h - the counters of the BPF object as comments of a profile. */
#ifndef HT_SNAPSHOT_LEDGER_NOTES_H
#define HT_SNAPSHOT_LEDGER_NOTES_H

#include <stdint.h>

#include "heaptap/abi.h"

struct profile;

/* Every counter, one line each: "ledger: <name> <value> (<meaning>)". */
int ledger_notes_add(struct profile *p, const uint64_t stats[HT_STAT_CNT]);
/* What a counter is called, and the ledger's sentence. */
const char *ledger_stat_name(unsigned stat);
const char *ledger_stat_meaning(unsigned stat);

#endif
