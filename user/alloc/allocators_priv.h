/* SPDX-License-Identifier: MIT */
/* allocators_priv.h - the parts of allocators.c: what is found in the code of a file, and where it can be tapped. */
#ifndef HT_ALLOC_ALLOCATORS_PRIV_H
#define HT_ALLOC_ALLOCATORS_PRIV_H

#include "base/std.h"
#include "alloc/allocators.h"
#include "alloc/placement.h"
#include "base/vec.h"
#include "elf/elf_symbols.h"
#include "elf/unwind_table.h"

struct elf_file;

/*
 * alloc_inner.c: the entry points of an allocator that end in, or call, other entry points of the same file.
 */

/* A name defined at an address. An address may have several (aliases). */
struct alloc_name {
	uint64_t vaddr;
	const char *name; /* owned by the caller */
};

struct alloc_calls {
	const struct elf_file *ef;
	const struct elf_symbols *syms;
	struct fde_index fdes;
	struct plt_stubs plt;
	struct alloc_lookup lookup;
	VEC(struct alloc_name) names; /* of entry points, sorted by vaddr */
};

/* Length of the function at vaddr, 0: unknown. */
uint64_t alloc_calls_function_bytes(const struct alloc_calls *ac, uint64_t vaddr);

/*
 * All functions that a function reaches by jumps alone: itself, and the local functions that it and they jump to
 * (split-off cold parts, common tails).
 */
#define ALLOC_TAIL_FUNCTIONS_CAP 8
#define ALLOC_TAIL_ENTRIES_CAP 8
struct alloc_tail {
	struct {
		uint64_t vaddr, bytes;
		bool calls_entry; /* it calls an entry point, not only jumps to it */
	} fn[ALLOC_TAIL_FUNCTIONS_CAP]; /* fn[0] is the function itself */
	int fn_cnt;
	uint64_t entry[ALLOC_TAIL_ENTRIES_CAP]; /* the entry points that are jumped to */
	int entry_cnt;
	uint64_t thunk_to; /* fn[0] does nothing but jump to this entry point; 0 = no */
	/* It may be off the stack while another library's entry point runs: it jumps there, through a pointer or by
	 * a name that allocates, or jumps to local code that calls it so. */
	bool may_leave;
};
/* is_free: the function frees, so a return without a result is not a failure. */
int alloc_calls_tail(const struct alloc_calls *ac, uint64_t vaddr, uint64_t bytes, bool is_free,
		     struct alloc_tail *ret);

/*
 * alloc_inner.c: finds the code of a file whose calls are a part of another call, where nothing else would show it. The
 * rules are in the essay of allocators.c.
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
int alloc_taps_find(const struct alloc_calls *ac, const struct alloc_lookup *lookup, bool is_lib,
		    bool multibyte_nop_ok, const struct alloc_founds *all, struct alloc_file *af);

/*
 * alloc_inlined.c: finds an allocator that was inlined into its callers, by a link of the program as a whole. These
 * call the slow ways that its entry points have for what they cannot do at once; no probe sees the rest.
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

/*
 * Prefixes of allocators that no table knows: jemalloc and mimalloc are often built with a prefix of the program that
 * contains them (duckdb_je_, je_arrow_). Some of an allocator's names are like no other's, so names that are these behind
 * the same prefix tell it.
 */

#define ALLOC_CANDIDATES_CAP 32

struct alloc_prefix_finder {
	struct {
		struct alloc_more_prefix prefix;
		uint32_t seen; /* bit n: the nth of the family's names was met */
	} all[ALLOC_CANDIDATES_CAP];
	size_t cnt;
};

/* Note the name of a function. */
void alloc_prefix_note(struct alloc_prefix_finder *pf, const char *name);
/* Add the prefixes that were found to the look-up. */
void alloc_prefix_take(const struct alloc_prefix_finder *pf, struct alloc_lookup *lk);

/*
 * alloc_unseen.c: a family whose messages are in the file, and that is not among those that are known
 * (alloc_family_bit()); NULL: none.
 */
const char *alloc_contents(struct elf_file *ef, uint32_t known_bits);

#endif
