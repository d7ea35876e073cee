/* SPDX-License-Identifier: MIT */
/*
 * allocators.h - the entry points of every allocator that heaptap knows, and which of them a
 * file defines.
 *
 * alloc_table.c holds the table: one row per entry point, the only place that knows a function's
 * name. Adding an allocator is adding rows. allocators.c finds rows in files.
 */
#ifndef HT_ALLOC_ALLOCATORS_H
#define HT_ALLOC_ALLOCATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "alloc/placement.h"

struct elf_file;
struct elf_symbols;

struct alloc_row {
	const char *name; /* without prefix: "malloc"; operator new by its linkage name */
	uint8_t op; /* HT_OP_* */
	uint8_t size_arg, count_arg, ptr_arg; /* HT_ARG_NONE = none */
	uint8_t ret; /* HT_RET_* */
	uint8_t flags; /* HT_SITE_* that hold for every implementation */
	bool asks_more; /* asks the function that it jumps to for more than it was asked for */
};

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
};

struct alloc_range {
	uint64_t start_vaddr, end_vaddr;
};

/* What one file defines. */
struct alloc_file {
	/* "glibc", "musl", "jemalloc", "rust-jemalloc", "tcmalloc", "mimalloc", "sanitizer", or
	 * "malloc" for one that is not known by name */
	const char *family;
	VEC(struct alloc_site) sites; /* one per function address (aliases merged) */
	/* Code that is the allocator's own: a call that returns into it is nested. */
	VEC(struct alloc_range) inner;
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

/* The whole table and its prefixes, for `doctor` ("looked for"). */
const struct alloc_row *alloc_table(size_t *ret_cnt);
const char *const *alloc_prefixes(size_t *ret_cnt);

/*
 * The row that a symbol's name stands for, or NULL. *ret_prefix is an index into
 * alloc_prefixes().
 */
struct alloc_lookup {
	uint64_t lengths[256]; /* by first character of a row's name: bit n = one of length n */
};
void alloc_lookup_init(struct alloc_lookup *lk);
const struct alloc_row *alloc_lookup_find(const struct alloc_lookup *lk, const char *name,
					  size_t *ret_prefix);
/* operator new and delete: implemented by the allocator itself, or on top of malloc. */
bool alloc_row_is_cxx(const struct alloc_row *row);

/* What is known of an implementation. */
struct alloc_family {
	const char *name;
	bool is_libc; /* its functions lie among others of the C library */
	bool zero_frees; /* realloc(p, 0) frees p and allocates nothing */
	/* Linked into a program its entry points are one object file, so code between two that
	 * are at most this far apart is its own. 0: not known, or not so. */
	uint32_t gap_bytes;
};
/* By DT_SONAME, and by a symbol that only it defines. NULL: not one of them. */
const struct alloc_family *alloc_family_by_soname(const char *soname);
const struct alloc_family *alloc_family_by_symbol(const char *name);
/* By prefix index: NULL for prefixes that tell nothing ("", "__libc_"). */
const struct alloc_family *alloc_family_by_prefix(size_t prefix);
/* An implementation that heaptap does not know by name. */
const struct alloc_family *alloc_family_unknown(void);
/* The table's own text that is equal to name; NULL: no family has that name. */
const char *alloc_family_name(const char *name);
/* The dynamic loader has a malloc of its own for the time before libc; never probed. */
bool alloc_is_loader(const char *soname);

/* Is this the name of a function that only passes allocations on (malloc, operator new,
 * __rust_alloc, alloc::raw_vec::...)? name may be a linkage or a demangled name. */
bool alloc_is_allocator_frame(const char *name);

#endif
