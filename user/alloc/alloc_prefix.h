/* SPDX-License-Identifier: MIT */
/*
 * alloc_prefix.h - prefixes of allocators that no table knows: jemalloc and mimalloc are often built with a prefix of
 * the program that contains them (duckdb_je_, je_arrow_). Some of an allocator's names are like no other's, so names
 * that are these behind the same prefix tell it.
 */
#ifndef HT_ALLOC_PREFIX_H
#define HT_ALLOC_PREFIX_H

#include <stddef.h>
#include <stdint.h>

#include "alloc/alloc_table.h"

#define ALLOC_CANDIDATES_CAP 32

struct alloc_prefix_finder {
	struct {
		struct alloc_more_prefix prefix;
		uint32_t seen; /* bit n: the nth of the family's names was met */
	} all[ALLOC_CANDIDATES_CAP];
	size_t cnt;
};

/* Note the name of a function. */
void alloc_prefix_note(struct alloc_prefix_finder *pf, const char *name);
/* Add the prefixes that were found to the look-up. */
void alloc_prefix_take(const struct alloc_prefix_finder *pf, struct alloc_lookup *lk);

#endif
