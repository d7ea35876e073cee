/* SPDX-License-Identifier: MIT */
/*
 * allocators.h - the entry points of every allocator that heaptap knows, and which of them a
 * file defines.
 *
 * allocators.c holds the table: one row per entry point, the only place that knows a function's
 * name. Adding an allocator is adding rows.
 */
#ifndef HT_TARGET_ALLOCATORS_H
#define HT_TARGET_ALLOCATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "elf/placement.h"

struct elf_file;
struct elf_symbols;

struct alloc_row {
	const char *name; /* without prefix: "malloc"; operator new by its linkage name */
	uint8_t op; /* HT_OP_* */
	uint8_t size_arg, count_arg, ptr_arg; /* HT_ARG_NONE = none */
	uint8_t ret; /* HT_RET_* */
	uint8_t flags; /* HT_SITE_* that hold for every implementation */
};

/* One function to probe. */
struct alloc_site {
	const struct alloc_row *row;
	char symbol[64]; /* as found: "_rjem_malloc" */
	uint64_t fn_vaddr, fn_bytes;
	uint64_t probe_off; /* file offset of the probe */
	struct placement placement;
	uint64_t cookie; /* HT_COOKIE without the site index */
	bool needs_return;
};

struct alloc_range {
	uint64_t start_vaddr, end_vaddr;
};

/* What one file defines. */
struct alloc_file {
	const char *family; /* "glibc", "jemalloc", "tcmalloc", "mimalloc", "musl", "rust-jemalloc", "malloc" */
	VEC(struct alloc_site) sites; /* one per function address (aliases merged) */
	/* Code that is the allocator's own: a call that returns into it is nested. */
	VEC(struct alloc_range) inner;
};

struct alloc_options {
	bool naive; /* probes at +0, for comparison */
	bool multibyte_nop_ok;
};

/* -ENOENT: the file defines no known entry point. */
int alloc_file_scan(struct elf_file *ef, const struct elf_symbols *syms,
		    const struct alloc_options *opts, struct alloc_file **ret);
void alloc_file_free(struct alloc_file *af);

/* The whole table and its prefixes, for `doctor` ("looked for"). */
const struct alloc_row *alloc_table(size_t *ret_cnt);
const char *const *alloc_prefixes(size_t *ret_cnt);
/* Is this the name of a function that only passes allocations on (malloc, operator new,
 * __rust_alloc, alloc::raw_vec::...)? name may be a linkage or a demangled name. */
bool alloc_is_allocator_frame(const char *name);

#endif
