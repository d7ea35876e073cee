/* SPDX-License-Identifier: MIT */
/*
 * explain/heap_pages.h - what the resident pages of a heap hold.
 *
 * A walk says what each piece of a heap is, in the order of addresses. From that each resident page is divided:
 *
 *	trim	free, and malloc_trim(0) gives the page back: whole pages inside a run of free chunks, 48 bytes
 *		behind its start; and of the main arena the end of its top.
 *	pinned	free, on a page with n > 0 live blocks. Each block is charged with 1/n of it: the Shapley value of
 *		"the page can go when all n are freed".
 *	kept	free otherwise: heads of runs, tops of other arenas, what threads cache.
 *
 * One page is remembered, so the memory needed does not depend on the heap's size.
 */
#ifndef HT_EXPLAIN_HEAP_PAGES_H
#define HT_EXPLAIN_HEAP_PAGES_H

#include "explain/mappings.h"
#include "explain/memory.h"
#include "explain/types.h"

enum heap_use {
	HEAP_LIVE,
	HEAP_FREE,
	HEAP_CACHED, /* freed into the cache of a thread */
	HEAP_TOP, /* free, at the end, never or no longer in a bin */
	HEAP_OWN, /* of malloc itself */
	HEAP_UNKNOWN,
	HEAP_FOREIGN, /* not malloc's: stays with its mapping */
	HEAP_USE_CNT,
};

/* Chunks of one size, 16 bytes wide up to 64 KiB, then of one power of two. */
#define HEAP_CLASS_SMALL 4096
#define HEAP_CLASS_CNT (HEAP_CLASS_SMALL + 48)
struct heap_class {
	uint64_t live_cnt, live_bytes;
	double pinned_bytes;
	uint64_t alone_bytes; /* free on pages with live blocks of this class alone: what freeing these would add */
};

struct heap_sum {
	uint64_t cnt[HEAP_USE_CNT], bytes[HEAP_USE_CNT]; /* pieces, resident or not */
	uint64_t live, trim, pinned, kept, own, unknown; /* resident bytes */
};

static inline uint64_t heap_sum_resident(const struct heap_sum *s)
{
	return s->live + s->trim + s->pinned + s->kept + s->own + s->unknown;
}
void heap_sum_add(struct heap_sum *to, const struct heap_sum *s);

uint32_t heap_class_of(uint64_t chunk_bytes);
/* The smallest and largest block of a class, as the program asked for it. */
void heap_class_range(uint32_t class, uint64_t *ret_from, uint64_t *ret_to);

struct heap_pages {
	struct memory *memory;
	struct mappings *maps; /* what is accounted is taken from these */
	struct heap_sum *sum;
	struct heap_class *classes; /* HEAP_CLASS_CNT; NULL: not wanted */
	struct types *types; /* NULL: not wanted */
	uint32_t type; /* of the live block that is added next */
	bool top_is_given; /* malloc_trim() gives back the end of the top */
	uint64_t top_step; /* in pieces of so many bytes */

	/* the current page */
	uint64_t page;
	uint32_t on_page[HEAP_USE_CNT], live_cnt;
	struct {
		uint32_t class, type;
	} live[MEMORY_PAGE / 16 + 2];
	/* the current run of free chunks */
	uint64_t run_addr, run_end, run_trim;
	bool is_run, run_has_top;
};

/* Pieces follow each other without a gap; use HEAP_FOREIGN for one. */
void heap_pages_add(struct heap_pages *h, uint64_t addr, uint64_t bytes, enum heap_use use);
/* After the last piece. */
void heap_pages_end(struct heap_pages *h);

#endif
