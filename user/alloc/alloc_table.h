/* SPDX-License-Identifier: MIT */
/*
 * alloc_table.h - the entry points of every allocator that heaptap knows, one row each. No other place knows the name
 * of a function. To add an allocator, add rows.
 */
#ifndef HT_ALLOC_TABLE_H
#define HT_ALLOC_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* A prefix that one file uses: see alloc_prefix.c. */
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
/* Is it operator new or delete? They are implemented by the allocator itself, or on top of malloc. */
bool alloc_row_is_cxx(const struct alloc_row *row);

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

#endif
