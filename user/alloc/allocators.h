/* SPDX-License-Identifier: MIT */
/* allocators.h - the entry points of allocators that a file defines, and where each is probed. */
#ifndef HT_ALLOC_ALLOCATORS_H
#define HT_ALLOC_ALLOCATORS_H

#include "base/std.h"
#include "alloc/placement.h"
#include "alloc/tap_spot.h"
#include "base/vec.h"

/*
 * alloc_table.c: the entry points of every allocator that heaptap knows, one row each. No other place knows the name
 * of a function. To add an allocator, add rows.
 */

/* Ranges of a file's code. As VEC(). */
struct alloc_range {
	uint64_t start_vaddr, end_vaddr;
};
struct alloc_ranges {
	struct alloc_range *data;
	size_t cnt, cap;
};

struct alloc_row {
	const char *name; /* without prefix: "malloc"; operator new by its linkage name */
	uint8_t op; /* HT_OP_* */
	uint8_t size_arg, count_arg, ptr_arg; /* HT_ARG_NONE = none */
	uint8_t ret; /* HT_RET_* */
	uint8_t flags; /* HT_SITE_* that hold for every implementation */
	bool adds_header; /* tail-calls with a larger size than its caller asked for */
};

/* The whole table and its prefixes; `doctor` lists them ("looked for"). */
const struct alloc_row *alloc_table(size_t *ret_cnt);
const char *const *alloc_prefixes(size_t *ret_cnt);

/* A prefix that one file uses: see allocators.c. */
struct alloc_more_prefix {
	char text[40];
	bool is_mimalloc; /* stands before "mi_"; else jemalloc's, and stands before the row's name */
};
#define ALLOC_MORE_PREFIXES_CAP 4

/* Find the row for a symbol's name, or NULL. *ret_prefix is an index into alloc_prefixes(), and behind its end into
 * `more`. */
struct alloc_lookup {
	uint64_t lengths[256]; /* by first character of a row's name: bit n = a name of length n */
	struct alloc_more_prefix more[ALLOC_MORE_PREFIXES_CAP];
	size_t more_cnt;
};
void alloc_lookup_init(struct alloc_lookup *lk);
const struct alloc_row *alloc_lookup_find(const struct alloc_lookup *lk, const char *name,
					  size_t *ret_prefix);

/* Facts about one implementation of an allocator. */
struct alloc_family {
	const char *name;
	bool is_libc; /* its functions are mixed with others of the C library */
	bool zero_frees; /* realloc(p, 0) frees p and allocates nothing */
};
/* By DT_SONAME, or by a symbol that only this family defines. NULL: none of them. */
const struct alloc_family *alloc_family_by_soname(const char *soname);
const struct alloc_family *alloc_family_by_symbol(const char *name);
/* By prefix index; NULL for prefixes that tell nothing ("", "__libc_"). */
const struct alloc_family *alloc_family_by_prefix(const struct alloc_lookup *lk, size_t prefix);
/* A bit for each family, by its name; jemalloc of Rust is jemalloc. 0: none. */
uint32_t alloc_family_bit(const char *name);
/* The family of an implementation that heaptap does not know by name. */
const struct alloc_family *alloc_family_unknown(void);
/* The table's own string that equals name; NULL: no family has that name. */
const char *alloc_family_name(const char *name);
/* Is it the dynamic loader? It has its own malloc for the time before libc, which is never probed. */
bool alloc_is_loader(const char *soname);

struct alloc_file;
struct elf_file;
struct elf_symbols;

/* One function to probe. The argument numbers in its row are those of the call; in its cookie, those of the
 * registers at the probe (placement.arg_at). */
struct alloc_site {
	const struct alloc_row *row;
	char symbol[64]; /* as in the file: "_rjem_malloc" */
	uint64_t fn_vaddr, fn_bytes;
	uint64_t probe_off; /* file offset of the probe */
	struct placement placement;
	uint64_t cookie; /* HT_COOKIE without the site index */
	bool needs_return;
	bool may_nest; /* it may call, or jump to, other entry points of the file */
	/* Its block may be one that another file's allocator has given (a wrapper). */
	bool may_forward;
	bool tap_is_inside; /* its calls pass the spot of another site */
	bool plain_swaps; /* plain_vaddr takes size and alignment in the other order */
	/* For a function that throws: one of the same file whose blocks are freed by the same functions, and that
	 * returns NULL at once where this one calls a handler and throws. 0: not found. */
	uint64_t plain_vaddr;
	struct tap_spot tap;
};

/* What one file defines. */
struct alloc_file {
	/* "glibc", "musl", "jemalloc", "rust-jemalloc", "tcmalloc", "mimalloc", "sanitizer", or "malloc" for a
	 * family that is not known by name */
	const char *family;
	uint32_t family_bits; /* of all families that it has entry points of: alloc_family_bit() */
	/* It is a jemalloc of which only the C functions have names. FREED: the function that frees blocks of a known
	 * size was found by its shape; LEAKS: it was not. */
	enum { ALLOC_PLAIN_NOT, ALLOC_PLAIN_FREED, ALLOC_PLAIN_LEAKS } plain;
	/* The family that is inlined into its callers; NULL: none. If its frees are, its entry points are no sites:
	 * blocks would be held for ever. */
	const char *inlined;
	VEC(struct alloc_site) sites; /* one per function address (aliases merged) */
	/* Code of the allocator whose calls are a part of another one; see allocators.c. */
	struct alloc_ranges inner;
};

struct alloc_options {
	bool naive; /* place probes at +0, for comparison */
	bool multibyte_nop_ok;
	/* Always probe functions that throw: see track/policy.h. Otherwise only where the entry decides
	 * whether its return is probed. */
	bool probe_throwing;
};

/* -ENOENT: the file defines no allocator, or has no symbols that would tell. */
int alloc_file_scan(struct elf_file *ef, const struct elf_symbols *syms,
		    const struct alloc_options *opts, struct alloc_file **ret);
void alloc_file_free(struct alloc_file *af);
/* Must the site not be probed? An exception out of the function would end the program, where return probes always fire.
 * has_session: a return is probed only where the entry says so. */
bool alloc_site_is_left_alone(const struct alloc_site *site, const struct alloc_options *opts,
			      bool has_session);

/* Is this the name of a function that only passes allocations on (malloc, operator new, __rust_alloc,
 * alloc::raw_vec::...)? The name may be mangled or demangled. */
bool alloc_is_allocator_frame(const char *name);

/*
 * alloc_unseen.c: allocators in a file that lost the names of its functions: what they allocate, or free, is not seen.
 * A stripped file still has the texts of an allocator's messages, by which it is known.
 */
enum alloc_unseen_kind {
	ALLOC_UNSEEN_NONE,
	ALLOC_UNSEEN_ALL, /* an allocator of which no function has a name */
	ALLOC_UNSEEN_PARTS, /* malloc and free have names; functions for aligned blocks have none */
	ALLOC_UNSEEN_FREES, /* ... and blocks may be freed by a function that has none */
	ALLOC_UNSEEN_INLINED, /* the allocator is inlined into its callers */
	ALLOC_UNSEEN_FOREIGN, /* the file is not probed, because another user could let that wait for ever */
	ALLOC_UNSEEN_CNT,
};

struct alloc_unseen {
	uint32_t kind; /* enum alloc_unseen_kind */
	char family[16]; /* "jemalloc" */
};

/* af: what alloc_file_scan() found in the file, or NULL. */
void alloc_unseen_find(struct elf_file *ef, const struct alloc_file *af, struct alloc_unseen *ret);

/* Room for the words below. */
#define ALLOC_UNSEEN_WORDS 160
/* "contains jemalloc, whose functions have no names: its allocations are not seen" */
const char *alloc_unseen_words(const struct alloc_unseen *u, char buf[ALLOC_UNSEEN_WORDS]);

#endif
