/* SPDX-License-Identifier: MIT */
/*
 * ledger.h - the rules of accounting, as a model: what the live map must hold after a sequence of
 * allocator calls. A second implementation: test_model.c compares it with what the kernel's map holds.
 *
 * The caller draws: `p` is the probability that an allocation was kept with, 0 when it was not.
 *
 * Not modelled: threads (calls come in the order of their effect), stacks, map limits.
 *
 * Blocks live in a vector with holes; a map leads from the address to the place. In-use sums are taken
 * from the blocks when asked for, so they cannot drift.
 */
#ifndef HT_TESTS_BPF_LEDGER_H
#define HT_TESTS_BPF_LEDGER_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/hmap.h"
#include "base/vec.h"
#include "profile/estimate.h"

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

struct ledger_account {
	uint64_t id;
	struct estimate allocated, freed;
};

struct ledger {
	struct hmap by_addr; /* addr -> index in blocks */
	struct hmap by_site; /* site -> index in sites */
	VEC(struct ledger_block) blocks; /* p == 0: a hole */
	VEC(uint64_t) holes;
	VEC(struct ledger_account) sites;
	struct ledger_counts counts;
};

static inline int ledger_new(struct ledger **ret)
{
	struct ledger *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	hmap_init(&l->by_addr, sizeof(uint64_t));
	hmap_init(&l->by_site, sizeof(uint64_t));
	*ret = l;
	return 0;
}

static inline void ledger_free(struct ledger *l)
{
	if (!l)
		return;
	hmap_release(&l->by_addr);
	hmap_release(&l->by_site);
	vec_release(&l->blocks);
	vec_release(&l->holes);
	vec_release(&l->sites);
	free(l);
}

static inline int ledger_find_or_add_site(struct ledger *l, uint64_t id,
					  struct ledger_account **ret)
{
	uint64_t *known = hmap_get(&l->by_site, &id);
	struct ledger_account fresh = { .id = id };

	if (!known) {
		if (vec_reserve(&l->sites, l->sites.cnt + 1) ||
		    hmap_put(&l->by_site, &id, l->sites.cnt))
			return -ENOMEM;
		l->sites.data[l->sites.cnt++] = fresh;
		*ret = &l->sites.data[l->sites.cnt - 1];
		return 0;
	}
	*ret = &l->sites.data[*known];
	return 0;
}

static inline int ledger_insert(struct ledger *l, const struct ledger_block *block)
{
	uint64_t index = l->holes.cnt ? l->holes.data[l->holes.cnt - 1] : l->blocks.cnt;

	/* Room for its hole as well: taking a block out must not fail. */
	if (vec_reserve(&l->blocks, index + 1) || vec_reserve(&l->holes, l->blocks.cnt + 1) ||
	    hmap_put(&l->by_addr, &block->addr, index))
		return -ENOMEM;
	l->blocks.data[index] = *block;
	if (index == l->blocks.cnt)
		l->blocks.cnt++;
	else
		l->holes.cnt--;
	return 0;
}

static inline bool ledger_take(struct ledger *l, uint64_t addr, struct ledger_block *ret)
{
	uint64_t *index = hmap_get(&l->by_addr, &addr);

	if (!index)
		return false;
	*ret = l->blocks.data[*index];
	l->blocks.data[*index] = (struct ledger_block){ 0 };
	l->holes.data[l->holes.cnt++] = *index;
	hmap_del(&l->by_addr, &addr);
	return true;
}

static inline void ledger_count_freed(struct ledger *l, const struct ledger_block *block)
{
	uint64_t *site = hmap_get(&l->by_site, &block->site);

	if (site)
		estimate_add(&l->sites.data[*site].freed, block->size_bytes, block->p);
}

static inline void ledger_drop_unseen_free(struct ledger *l, uint64_t addr)
{
	struct ledger_block old;

	if (!ledger_take(l, addr, &old))
		return;
	l->counts.missed_frees++;
	ledger_count_freed(l, &old);
}

/*
 * malloc, calloc, memalign, operator new... returned addr (0 = failed). A kept block whose address
 * is still taken replaces the old one, whose free was not seen; that is counted. (An allocation
 * that was not kept leaves no trace, so it cannot tell of a missed free.) 0 or -ENOMEM.
 */
static inline int ledger_alloc(struct ledger *l, uint64_t addr, uint64_t size_bytes, uint64_t site,
			       double p)
{
	struct ledger_block block = { addr, size_bytes, site, p };
	struct ledger_account *s;
	int err;

	if (!addr) {
		l->counts.failed_calls += p > 0;
		return 0;
	}
	if (p <= 0)
		return 0;
	ledger_drop_unseen_free(l, addr);
	err = ledger_find_or_add_site(l, site, &s);
	if (!err)
		err = ledger_insert(l, &block);
	if (!err)
		estimate_add(&s->allocated, size_bytes, p);
	return err;
}

/* free, delete, sdallocx... was entered. NULL and addresses that were not sampled are nothing. */
static inline void ledger_release(struct ledger *l, uint64_t addr)
{
	struct ledger_block block;

	if (ledger_take(l, addr, &block))
		ledger_count_freed(l, &block);
}

/*
 * realloc in two steps, because other threads see the old address free in between.
 * enter: takes old out of the map; *ret_held tells whether something was (then *ret_block).
 * leave: success frees it for good and adds the new block; failure (addr 0) puts it back.
 * realloc(p, 0) is ledger_release(p), realloc(NULL, n) is ledger_alloc().
 */
static inline void ledger_realloc_enter(struct ledger *l, uint64_t old_addr, bool *ret_held,
					struct ledger_block *ret_block)
{
	*ret_held = ledger_take(l, old_addr, ret_block);
}

static inline int ledger_realloc_leave(struct ledger *l, bool held,
				       const struct ledger_block *block, uint64_t addr,
				       uint64_t size_bytes, uint64_t site, double p)
{
	if (!addr) {
		l->counts.failed_calls += p > 0;
		return held ? ledger_insert(l, block) : 0;
	}
	if (held)
		ledger_count_freed(l, block);
	return ledger_alloc(l, addr, size_bytes, site, p);
}

static inline const struct ledger_block *ledger_find(const struct ledger *l, uint64_t addr)
{
	const uint64_t *index = hmap_get(&l->by_addr, &addr);

	return index ? &l->blocks.data[*index] : NULL;
}

static inline uint64_t ledger_block_cnt(const struct ledger *l)
{
	return l->by_addr.cnt;
}

/* Walk: start with *pos = 0, until NULL. */
static inline const struct ledger_block *ledger_next(const struct ledger *l, uint64_t *pos)
{
	while (*pos < l->blocks.cnt) {
		const struct ledger_block *block = &l->blocks.data[(*pos)++];

		if (block->p > 0)
			return block;
	}
	return NULL;
}

static inline struct estimate ledger_inuse_of(const struct ledger *l, bool all, uint64_t site)
{
	const struct ledger_block *block;
	struct estimate e = { 0 };
	uint64_t pos = 0;

	while ((block = ledger_next(l, &pos)))
		if (all || block->site == site)
			estimate_add(&e, block->size_bytes, block->p);
	return e;
}

/* Sums of one site; all zero for one that was never sampled. */
static inline struct ledger_sums ledger_site(const struct ledger *l, uint64_t site)
{
	const uint64_t *index = hmap_get(&l->by_site, &site);
	struct ledger_sums sums = { 0 };

	if (!index)
		return sums;
	sums.allocated = l->sites.data[*index].allocated;
	sums.freed = l->sites.data[*index].freed;
	sums.inuse = ledger_inuse_of(l, false, site);
	return sums;
}

static inline struct ledger_sums ledger_total(const struct ledger *l)
{
	struct ledger_sums sums = { .inuse = ledger_inuse_of(l, true, 0) };

	for (size_t i = 0; i < l->sites.cnt; i++) {
		estimate_merge(&sums.allocated, &l->sites.data[i].allocated);
		estimate_merge(&sums.freed, &l->sites.data[i].freed);
	}
	return sums;
}

static inline struct ledger_counts ledger_counts(const struct ledger *l)
{
	return l->counts;
}

#endif
