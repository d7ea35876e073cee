/* SPDX-License-Identifier: MIT */
/*
 * alloc_calls.h - the entry points of an allocator that end in, or call, other entry points of the same file.
 */
#ifndef HT_ALLOC_CALLS_H
#define HT_ALLOC_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "elf/elf_symbols.h"
#include "unwind/fde_index.h"
#include "alloc/placement.h"
#include "elf/plt_names.h"
#include "alloc/alloc_table.h"

struct elf_file;

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

/* After init the caller fills `names` (in any order) and then calls sort. */
int alloc_calls_init(struct alloc_calls *ac, struct elf_file *ef, const struct elf_symbols *syms);
void alloc_calls_sort(struct alloc_calls *ac);
void alloc_calls_release(struct alloc_calls *ac);

/* Length of the function at vaddr, 0: unknown. */
uint64_t alloc_calls_function_bytes(const struct alloc_calls *ac, uint64_t vaddr);

/* The vaddr of the entry point that a branch leads to (directly, by PLT or GOT slot), 0: none. */
uint64_t alloc_calls_target(const struct alloc_calls *ac, const struct branch_out *br);

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

#endif
