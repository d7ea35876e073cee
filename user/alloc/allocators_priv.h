/* SPDX-License-Identifier: MIT */
/* allocators_priv.h - the parts of allocators.c: the allocator's own code in a file, and where it can be tapped. */
#ifndef HT_ALLOC_ALLOCATORS_PRIV_H
#define HT_ALLOC_ALLOCATORS_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/alloc_calls.h"
#include "alloc/alloc_table.h"

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

#endif
