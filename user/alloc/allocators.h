/* SPDX-License-Identifier: MIT */
/* allocators.h - which of the entry points of alloc_table.h a file defines, and where each is probed. */
#ifndef HT_ALLOC_ALLOCATORS_H
#define HT_ALLOC_ALLOCATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "alloc/alloc_table.h"
#include "alloc/placement.h"
#include "alloc/tap_spot.h"

struct elf_file;
struct elf_symbols;

/* One function to probe. Its row's argument numbers are those of the call; the cookie's are those
 * of the registers at the probe (placement.arg_at). */
struct alloc_site {
	const struct alloc_row *row;
	char symbol[64]; /* as found: "_rjem_malloc" */
	uint64_t fn_vaddr, fn_bytes;
	uint64_t probe_off; /* file offset of the probe */
	struct placement placement;
	uint64_t cookie; /* HT_COOKIE without the site index */
	bool needs_return;
	bool may_nest; /* it may call, or jump to, other entry points of the file */
	struct tap_spot tap;
	uint64_t nothrow_vaddr; /* of one that throws: the form that returns NULL instead; 0: not found */
};

/* What one file defines. */
struct alloc_file {
	/* "glibc", "musl", "jemalloc", "rust-jemalloc", "tcmalloc", "mimalloc", "sanitizer", or
	 * "malloc" for one that is not known by name */
	const char *family;
	VEC(struct alloc_site) sites; /* one per function address (aliases merged) */
	/* Code that is the allocator's own: a call that returns into it is nested. */
	struct alloc_ranges inner;
};

struct alloc_options {
	bool naive; /* probes at +0, for comparison */
	bool multibyte_nop_ok;
	/* Functions that throw are probed whatever comes: see tracker.h. Else only where a return is
	 * probed when the entry says so. */
	bool probe_throwing;
};

/* -ENOENT: the file defines no allocator (also: it has no symbols that would tell). */
int alloc_file_scan(struct elf_file *ef, const struct elf_symbols *syms,
		    const struct alloc_options *opts, struct alloc_file **ret);
void alloc_file_free(struct alloc_file *af);

/* Is this the name of a function that only passes allocations on (malloc, operator new,
 * __rust_alloc, alloc::raw_vec::...)? name may be a linkage or a demangled name. */
bool alloc_is_allocator_frame(const char *name);

#endif
