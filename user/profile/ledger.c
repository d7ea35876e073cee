/* SPDX-License-Identifier: MIT */
/*
 * ledger.c - see ledger.h. Blocks live in a vector with holes; a map leads from the address to the
 * place. In-use sums are taken from the blocks when asked for, so they cannot drift.
 */
#include "profile/ledger.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hmap.h"
#include "base/vec.h"

struct site {
	uint64_t id;
	struct estimate allocated, freed;
};

struct ledger {
	struct hmap by_addr; /* addr -> index in blocks */
	struct hmap by_site; /* site -> index in sites */
	VEC(struct ledger_block) blocks; /* p == 0: a hole */
	VEC(uint64_t) holes;
	VEC(struct site) sites;
	struct ledger_counts counts;
};

int ledger_new(struct ledger **ret)
{
	struct ledger *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	hmap_init(&l->by_addr, sizeof(uint64_t));
	hmap_init(&l->by_site, sizeof(uint64_t));
	*ret = l;
	return 0;
}

void ledger_free(struct ledger *l)
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

static int find_or_add_site(struct ledger *l, uint64_t id, struct site **ret)
{
	uint64_t *known = hmap_get(&l->by_site, &id);
	struct site fresh = { .id = id };

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

static int insert(struct ledger *l, const struct ledger_block *block)
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

static bool take(struct ledger *l, uint64_t addr, struct ledger_block *ret)
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

static void count_freed(struct ledger *l, const struct ledger_block *block)
{
	uint64_t *site = hmap_get(&l->by_site, &block->site);

	if (site)
		estimate_add(&l->sites.data[*site].freed, block->size_bytes, block->p);
}

static void drop_unseen_free(struct ledger *l, uint64_t addr)
{
	struct ledger_block old;

	if (!take(l, addr, &old))
		return;
	l->counts.missed_frees++;
	count_freed(l, &old);
}

int ledger_alloc(struct ledger *l, uint64_t addr, uint64_t size_bytes, uint64_t site, double p)
{
	struct ledger_block block = { addr, size_bytes, site, p };
	struct site *s;
	int err;

	if (!addr) {
		l->counts.failed_calls += p > 0;
		return 0;
	}
	if (p <= 0)
		return 0;
	drop_unseen_free(l, addr);
	err = find_or_add_site(l, site, &s);
	if (!err)
		err = insert(l, &block);
	if (!err)
		estimate_add(&s->allocated, size_bytes, p);
	return err;
}

void ledger_release(struct ledger *l, uint64_t addr)
{
	struct ledger_block block;

	if (take(l, addr, &block))
		count_freed(l, &block);
}

void ledger_realloc_enter(struct ledger *l, uint64_t old_addr, bool *ret_held,
			  struct ledger_block *ret_block)
{
	*ret_held = take(l, old_addr, ret_block);
}

int ledger_realloc_leave(struct ledger *l, bool held, const struct ledger_block *block,
			 uint64_t addr, uint64_t size_bytes, uint64_t site, double p)
{
	if (!addr) {
		l->counts.failed_calls += p > 0;
		return held ? insert(l, block) : 0;
	}
	if (held)
		count_freed(l, block);
	return ledger_alloc(l, addr, size_bytes, site, p);
}

const struct ledger_block *ledger_find(const struct ledger *l, uint64_t addr)
{
	const uint64_t *index = hmap_get(&l->by_addr, &addr);

	return index ? &l->blocks.data[*index] : NULL;
}

uint64_t ledger_block_cnt(const struct ledger *l)
{
	return l->by_addr.cnt;
}

const struct ledger_block *ledger_next(const struct ledger *l, uint64_t *pos)
{
	while (*pos < l->blocks.cnt) {
		const struct ledger_block *block = &l->blocks.data[(*pos)++];

		if (block->p > 0)
			return block;
	}
	return NULL;
}

static struct estimate inuse_of(const struct ledger *l, bool all, uint64_t site)
{
	const struct ledger_block *block;
	struct estimate e = { 0 };
	uint64_t pos = 0;

	while ((block = ledger_next(l, &pos)))
		if (all || block->site == site)
			estimate_add(&e, block->size_bytes, block->p);
	return e;
}

struct ledger_sums ledger_site(const struct ledger *l, uint64_t site)
{
	const uint64_t *index = hmap_get(&l->by_site, &site);
	struct ledger_sums sums = { 0 };

	if (!index)
		return sums;
	sums.allocated = l->sites.data[*index].allocated;
	sums.freed = l->sites.data[*index].freed;
	sums.inuse = inuse_of(l, false, site);
	return sums;
}

struct ledger_sums ledger_total(const struct ledger *l)
{
	struct ledger_sums sums = { .inuse = inuse_of(l, true, 0) };

	for (size_t i = 0; i < l->sites.cnt; i++) {
		estimate_merge(&sums.allocated, &l->sites.data[i].allocated);
		estimate_merge(&sums.freed, &l->sites.data[i].freed);
	}
	return sums;
}

struct ledger_counts ledger_counts(const struct ledger *l)
{
	return l->counts;
}
