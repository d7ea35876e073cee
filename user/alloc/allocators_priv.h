/* SPDX-License-Identifier: MIT */
/* allocators_priv.h - the parts of allocators.c: what is found in the code of a file, and where it can be tapped. */
#ifndef HT_ALLOC_ALLOCATORS_PRIV_H
#define HT_ALLOC_ALLOCATORS_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/alloc_calls.h"
#include "alloc/alloc_table.h"
#include "elf/elf_symbols.h"
#include "elf/plt_names.h"
#include "unwind/fde_index.h"

/*
 * alloc_inner.c: finds the code of a file whose calls are a part of another call, where nothing else would show it. Used
 * by allocators.c only; the rules are in its essay.
 */

/* At most this many ranges per file; a process has room for HT_INNER_CAP in total. */
#define ALLOC_INNER_CAP 12

/* One entry point that a file defines. */
struct alloc_found {
	const struct alloc_row *row;
	const struct alloc_family *family;
	size_t prefix;
	char symbol[64];
	uint64_t vaddr, bytes;
	uint8_t flags; /* HT_SITE_* */
	bool is_skipped; /* the probe of another entry point sees its calls */
	struct alloc_tail tail;
};
struct alloc_founds {
	struct alloc_found *data; /* sorted by vaddr */
	size_t cnt;
};

/* is_allocator: the file is nothing but an allocator. 0 or -ENOMEM. The caller frees ret->data. */
int alloc_inner_find(const struct alloc_calls *ac, const struct elf_file *ef, bool is_allocator,
		     const struct alloc_founds *all, struct alloc_ranges *ret);

/*
 * alloc_taps.c: where the entry points of a file can be tapped, and what a tap must know of each: fills the members of
 * the sites that are for the tap. Sites are sorted by fn_vaddr, as all is. 0 or -ENOMEM.
 */
struct alloc_file;
int alloc_taps_find(const struct alloc_calls *ac, const struct alloc_lookup *lookup, bool is_lib,
		    bool multibyte_nop_ok, const struct alloc_founds *all, struct alloc_file *af);

/*
 * alloc_shape.c: finds a function of jemalloc that has no name by what its code does.
 */

/* Functions that free a block of a known size, as sdallocx() does; more than these are not looked for. */
#define ALLOC_SHAPE_CAP 4
struct alloc_shape {
	uint64_t vaddr[ALLOC_SHAPE_CAP], bytes[ALLOC_SHAPE_CAP];
	size_t cnt;
	bool is_free; /* free() itself has that shape */
};

/* free_vaddr: jemalloc's free(). 0 or -ENOMEM. */
int alloc_shape_find(const struct elf_file *ef, const struct fde_index *fdes, uint64_t free_vaddr,
		     uint64_t free_bytes, struct alloc_shape *ret);

/*
 * alloc_inlined.c: finds an allocator that was inlined into its callers, by a link of the program as a whole. These call
 * the slow ways that its entry points have for what they cannot do at once; no probe sees the rest.
 */

#define ALLOC_SLOW_WAYS_CAP 8

/* Functions that only an allocator's own entry points call. */
struct alloc_slow_ways {
	struct {
		uint64_t vaddr;
		char name[64];
		uint32_t is; /* ALLOC_INLINED_* */
	} way[ALLOC_SLOW_WAYS_CAP];
	size_t cnt;
};

#define ALLOC_INLINED_ALLOCS 1
#define ALLOC_INLINED_FREES 2

/* Note a function, if it is a slow way. */
void alloc_slow_note(struct alloc_slow_ways *sw, const struct elf_symbol *sym);
/* Which of them are called from elsewhere? ALLOC_INLINED_*. */
uint32_t alloc_inlined_find(const struct elf_file *ef, const struct plt_stubs *plt,
			    const struct alloc_slow_ways *sw);

#endif
