/* SPDX-License-Identifier: MIT */
/* explain/jemalloc_priv.h - what the parts of explain/jemalloc share. File by file. */
#ifndef HT_EXPLAIN_JEMALLOC_PRIV_H
#define HT_EXPLAIN_JEMALLOC_PRIV_H

#include "explain/jemalloc.h"

#define TREE_WORDS (1ULL << 18) /* of the root, and of each leaf */
#define TREE_BYTES (TREE_WORDS * 8)
#define LEAF_SPAN_BITS 30 /* addresses of a leaf */

/* The first word of an extent's descriptor. Its address and its size follow; its bitmap is at DESCRIPTOR_BITMAP. */
struct jemalloc_layout {
	const char *version;
	uint64_t descriptor_mask; /* of a word of a leaf */
	bool word_has_state;
	uint32_t state_shift, state_mask, class_shift, free_shift;
};
#define JEMALLOC_LAYOUT_CNT 2
extern const struct jemalloc_layout jemalloc_layouts[JEMALLOC_LAYOUT_CNT];

#define DESCRIPTOR_ADDR 8
#define DESCRIPTOR_SIZE 16
#define DESCRIPTOR_BITMAP 64 /* a bit for each free region */
#define REGIONS_CAP 512

enum jemalloc_state { STATE_ACTIVE, STATE_DIRTY, STATE_MUZZY, STATE_RETAINED };

struct jemalloc_extent {
	uint64_t descriptor, addr, bytes; /* its pages */
	uint32_t state, class, free_cnt; /* free_cnt: regions, of a slab */
	bool is_slab;
};

/* jemalloc_find.c */
/*
 * The same, but either may have changed since the word was read at word_addr: then both are read again. The extent is of
 * 0 bytes if the word is 0 by now.
 */
bool jemalloc_extent_now(struct memory *m, const struct jemalloc_layout *l, uint64_t word_addr,
			 uint64_t word, uint64_t addr, struct jemalloc_extent *ret);
/* Find the next tree in or behind *from, an address, and go on behind it. -ENOENT: there is none. */
int jemalloc_find(struct memory *m, struct mappings *maps, uint64_t *from, uint64_t *ret_root,
		  const struct jemalloc_layout **ret_layout);

#endif
