/* SPDX-License-Identifier: MIT */
/*
 * explain/jemalloc.h - the heap of jemalloc, read from outside and without symbols.
 *
 * jemalloc finds the extent of an address in a tree of two levels: a root of 2^18 words in the .bss of its library or
 * program, one for each GiB, and leaves of 2^18 words, one for each page. A word of a leaf has the size class and the
 * address of the extent's descriptor. Nothing is taken from a version or a name. It is a tree if
 *
 *	the root	has leaves of their own GiB in all words that are not 0
 *	a leaf		names descriptors that cover the page of the word, and agree with it in size class, kind and state
 *	an extent	begins where the one before has ended, or later
 *	a slab		has as many free regions in its bitmap as its descriptor says
 *	a base block	(metadata) has its unused rest at its end, and a descriptor or leaf in it
 *
 * Of the words of leaves and of the slabs a 100th may fail, for threads change them meanwhile. Of a tree with more
 * nothing is believed, and its memory stays with its mappings.
 *
 * Known: x86-64 with addresses of 48 bits, pages of 4 KiB; jemalloc 5.2 and 5.3. What threads have in their caches
 * counts as live, as in mallctl("stats.allocated").
 */
#ifndef HT_EXPLAIN_JEMALLOC_H
#define HT_EXPLAIN_JEMALLOC_H

#include "explain/memory.h"
#include "explain/types.h"
#include "profile/resident_rows.h"

#define JEMALLOC_TREE_CNT 4 /* a program may have one, and each of its libraries */
#define JEMALLOC_BIN_CNT 36 /* size classes of blocks that share a slab */

/* Of one size class; jemalloc's words: a slab is divided into regions. */
struct jemalloc_bin {
	uint64_t slab_cnt, region_cnt, live_cnt;
	uint64_t pinned_bytes; /* resident and free, in slabs with live blocks */
};

struct jemalloc_sum {
	/* address space, resident or not; as in mallctl("stats.active") and so on */
	uint64_t active_bytes, live_bytes, dirty_bytes, muzzy_bytes, retained_bytes, base_bytes;
	uint64_t live_cnt;
	/* resident bytes; retained ones are left to their mappings */
	uint64_t live, pinned, dirty, own, retained;
	struct jemalloc_bin bins[JEMALLOC_BIN_CNT];
};

struct jemalloc_tree {
	uint64_t root;
	const char *version; /* whose descriptors these are */
	bool is_proved;
	char why[160]; /* it is not proved */
	uint64_t word_cnt, bad_cnt; /* words of leaves; those that fail */
	uint64_t slab_cnt, bad_slab_cnt;
	struct jemalloc_sum sum;
};

struct jemalloc {
	struct jemalloc_tree trees[JEMALLOC_TREE_CNT];
	size_t tree_cnt;
	struct jemalloc_sum sum; /* of the proved ones */
	bool is_mapped; /* a file of that name */
	struct types
		*types; /* the caller's; NULL: not wanted. Blocks of the proved trees are added */
	struct resident_pins *pins; /* likewise, and of those that are not believed, too */
};

/* Find the trees, and take what they hold from the mappings. 0 also if there is no jemalloc; -ENOMEM. */
int jemalloc_read(struct memory *m, struct mappings *maps, struct jemalloc *je);
/* The smallest and largest block of a bin. */
void jemalloc_bin_range(uint32_t bin, uint64_t *ret_from, uint64_t *ret_to);

#endif
