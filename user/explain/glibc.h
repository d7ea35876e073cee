/* SPDX-License-Identifier: MIT */
/*
 * explain/glibc.h - the heap of glibc's malloc, read from outside and without symbols.
 *
 * Nothing is taken from a version or a name: a structure is what it is called here only if what it says fits together.
 *
 *	the main arena	all 127 bins are empty or lead to chunks that lead back, its list of arenas is a ring, its
 *			top is in a mapping
 *	another arena	the same, and its heaps name it and are as large together as it says
 *	the parameters	(mp_) lie beside the main arena, and name the start of the break
 *	a heap		its chunks follow each other from its start to its end; of an arena a 50th may fail, for
 *			threads change it meanwhile
 *
 * An arena that fails is not believed, and none of its memory is called live or free. Of the others struct glibc_arena
 * says as well how far bins, fastbins and the caches of threads agree with the chunks that were found.
 *
 * Known: x86-64, 2.26 to 2.43. The caches of threads from 2.29 on; before, their blocks count as live, and so do those up
 * to 2.33 of threads that share an arena. Tried with 2.28, 2.31, 2.36, 2.41 and 2.43 (tests/siblings/test_glibc.sh).
 */
#ifndef HT_EXPLAIN_GLIBC_H
#define HT_EXPLAIN_GLIBC_H

#include "explain/memory.h"
#include "explain/types.h"
#include "profile/resident_rows.h"

/*
 * heap_pages.c: what the resident pages of a heap hold.
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
	struct resident_recorded recorded; /* with pins */
	uint64_t alone_bytes; /* free on pages with live blocks of this class alone: what freeing these would add */
};

struct heap_sum {
	uint64_t cnt[HEAP_USE_CNT], bytes[HEAP_USE_CNT]; /* pieces, resident or not */
	uint64_t live, trim, pinned, kept, own, unknown; /* resident bytes */
	uint64_t trim_top; /* what of trim is the main arena's top, which free() returns beyond a threshold */
};

static inline uint64_t heap_sum_resident(const struct heap_sum *s)
{
	return s->live + s->trim + s->pinned + s->kept + s->own + s->unknown;
}

uint32_t heap_class_of(uint64_t chunk_bytes);
/* The smallest and largest block of a class, as the program asked for it. */
void heap_class_range(uint32_t class, uint64_t *ret_from, uint64_t *ret_to);

struct heap_pages {
	struct memory *memory;
	struct mappings *maps; /* what is accounted is taken from these */
	struct heap_sum *sum;
	struct heap_class *classes; /* HEAP_CLASS_CNT; NULL: not wanted */
	struct types *types; /* NULL: not wanted */
	struct resident_pins *pins; /* likewise */
	uint32_t type; /* of the live block that is added next */
	uint64_t lead_bytes; /* what lies before its chunk */
	bool top_is_given; /* malloc_trim() gives back the end of the top */
	uint64_t top_step; /* in pieces of so many bytes */

	/* the current page */
	uint64_t page;
	uint32_t on_page[HEAP_USE_CNT], live_cnt;
	struct {
		uint32_t class, type;
		size_t pin; /* 0: none of pins */
	} live[MEMORY_PAGE / 16 + 2];
	/* the current run of free chunks */
	uint64_t run_addr, run_end, run_trim;
	bool is_run, run_has_top;
};

/* Pieces follow each other without a gap; use HEAP_FOREIGN for one. */
void heap_pages_add(struct heap_pages *h, uint64_t addr, uint64_t bytes, enum heap_use use);
/* After the last piece. */
void heap_pages_end(struct heap_pages *h);

#define GLIBC_FAST_CNT 10
#define GLIBC_BIN_CNT 127

/* One piece of address space that an arena divides into chunks. */
struct glibc_heap {
	uint64_t addr, first_chunk, end; /* end: of the top in the last one */
	uint64_t *fast; /* a bit for each 16 bytes: a chunk in a fastbin begins here; NULL: none */
};

struct glibc_arena {
	uint64_t addr;
	bool is_main, is_proved;
	char why[160]; /* it is not proved */
	uint64_t top, top_bytes, system_bytes;
	VEC(struct glibc_heap) heaps; /* the one with the top is the last */
	struct heap_sum sum;
	/* Counted apart from the walk, to compare with it. */
	uint64_t bin_cnt, bin_bytes, fast_cnt, fast_bytes, cached_cnt;
	uint64_t walked_fast_cnt;
	bool bins_are_read; /* to their ends, which takes too long if they are long */
};

struct glibc_parameters {
	bool is_known;
	uint64_t addr, sbrk_base, thp_bytes, trim_threshold;
	uint64_t mmapped_cnt_addr, mmapped_bytes_addr; /* where these are */
	uint64_t mmapped_cnt, mmapped_bytes;
	uint64_t cache_cap; /* blocks in a list of a thread's cache */
};

struct glibc {
	uint64_t main_arena; /* 0: no glibc malloc, or it could not be read */
	uint32_t bins_off; /* of an arena's bins in it, by which versions differ */
	bool is_unread; /* the library is mapped, and there is memory of the break, but no main arena was found... */
	char why[160]; /* ... for this reason */
	VEC(struct glibc_arena) arenas;
	struct glibc_parameters parameters;
	uint64_t cache_key; /* of blocks in a thread's cache; 0: not known */
	VEC(uint64_t) cache_keys; /* or of each thread, sorted */
	struct heap_class *classes; /* HEAP_CLASS_CNT, of the proved arenas and mmapped blocks */
	struct types *types; /* the caller's; NULL: not wanted. Blocks of these arenas are added */
	struct resident_pins *pins; /* likewise, and of those that are not believed, too */
	struct heap_sum sum; /* of all of these */
	struct heap_sum mmapped;
};

/* Find the arenas and their heaps; nothing is walked. 0 also if there is no glibc malloc; -ENOMEM. */
int glibc_find(struct memory *m, struct mappings *maps, struct glibc *g);
/* Walk the heaps and the mmapped blocks, and take what they hold from the mappings. 0 or -ENOMEM. */
int glibc_walk(struct memory *m, struct mappings *maps, struct glibc *g);
void glibc_release(struct glibc *g);

#endif
