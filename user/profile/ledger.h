/* SPDX-License-Identifier: MIT */
/*
 * ledger.h - the rules of accounting, as a model: what the live map must hold after a sequence of
 * allocator calls.
 *
 * The kernel's map is filled by BPF programs; this is the same in plain C, one call at a time, so
 * that the rules can be proven without a kernel and the kernel's map compared with them. The
 * caller draws: `p` is the probability that an allocation was kept with, 0 when it was not.
 *
 * Not modelled: threads (calls come in the order of their effect), stacks, map limits.
 */
#ifndef HT_PROFILE_LEDGER_H
#define HT_PROFILE_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/estimate.h"

struct ledger;

/* A block that was sampled and is outstanding. site is whatever the caller accounts by. */
struct ledger_block {
	uint64_t addr;
	uint64_t size_bytes;
	uint64_t site;
	double p;
};

/* Sums of one site, or of all. In-use is not in - out but the blocks that are there. */
struct ledger_sums {
	struct estimate allocated, freed, inuse;
};

struct ledger_counts {
	uint64_t failed_calls; /* sampled calls that allocated nothing */
	uint64_t missed_frees; /* an address came again although it was not freed */
};

int ledger_new(struct ledger **ret);
void ledger_free(struct ledger *l);

/*
 * malloc, calloc, memalign, operator new... returned addr (0 = failed). A kept block whose address
 * is still taken replaces the old one, whose free was not seen; that is counted. (An allocation
 * that was not kept leaves no trace, so it cannot tell of a missed free.) 0 or -ENOMEM.
 */
int ledger_alloc(struct ledger *l, uint64_t addr, uint64_t size_bytes, uint64_t site, double p);
/* free, delete, sdallocx... was entered. NULL and addresses that were not sampled are nothing. */
void ledger_release(struct ledger *l, uint64_t addr);
/*
 * realloc in two steps, because other threads see the old address free in between.
 * enter: takes old out of the map; *ret_held tells whether something was (then *ret_block).
 * leave: success frees it for good and adds the new block; failure (addr 0) puts it back.
 * realloc(p, 0) is ledger_release(p), realloc(NULL, n) is ledger_alloc().
 */
void ledger_realloc_enter(struct ledger *l, uint64_t old_addr, bool *ret_held,
			  struct ledger_block *ret_block);
int ledger_realloc_leave(struct ledger *l, bool held, const struct ledger_block *block,
			 uint64_t addr, uint64_t size_bytes, uint64_t site, double p);

const struct ledger_block *ledger_find(const struct ledger *l, uint64_t addr);
uint64_t ledger_block_cnt(const struct ledger *l);
/* Walk: start with *pos = 0, until NULL. */
const struct ledger_block *ledger_next(const struct ledger *l, uint64_t *pos);
/* Sums of one site; all zero for one that was never sampled. */
struct ledger_sums ledger_site(const struct ledger *l, uint64_t site);
struct ledger_sums ledger_total(const struct ledger *l);
struct ledger_counts ledger_counts(const struct ledger *l);

#endif
