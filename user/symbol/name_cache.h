/* SPDX-License-Identifier: MIT */
/*
 * name_cache.h - names of addresses, in memory shared by the processes that look them up.
 *
 * Each profile of `heaptap serve` is made by a process of its own, and most of its addresses were in the profile before.
 * To read the debug information of a C library again takes 50 ms.
 *
 * No locks, because any of these processes may be killed at any moment: entries are only added. When there is no room, or
 * after ten minutes (somebody may have installed debug information), the process that forks the others begins a new one.
 */
#ifndef HT_SYMBOL_NAME_CACHE_H
#define HT_SYMBOL_NAME_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/symbol.h"

struct name_cache;
struct wire_reader;

/* What names are of. */
struct name_cache_query {
	struct slow_file_key key; /* all 0: nothing is known, and nothing kept */
	bool lines, demangle;
	const uint64_t *vaddr;
	size_t vaddr_cnt;
};

int name_cache_new(struct name_cache **ret);
void name_cache_free(struct name_cache *c);
/* For the process that forks the others, now and then. */
void name_cache_renew(struct name_cache *c);

/* NULL is fine below: it knows nothing. */

/* For a child whose own children, which read files, must not see it. */
void name_cache_hide(struct name_cache *c);

/* Fill the answers that are known. Returns how many are, with those whose address is known to have no name. *ret_flags: what
 * is missing (symbol_wire.h). */
size_t name_cache_get(struct name_cache *c, const struct name_cache_query *q, struct wire_reader *r,
		      uint32_t *ret_flags);
/* Add all answers, of a reader that is done. */
void name_cache_put(struct name_cache *c, const struct name_cache_query *q,
		    const struct wire_reader *r);

#endif
