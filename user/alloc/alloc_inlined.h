/* SPDX-License-Identifier: MIT */
/*
 * alloc_inlined.h - finds an allocator that was inlined into its callers, by a link of the program as a whole. These
 * call the slow ways that its entry points have for what they cannot do at once; no probe sees the rest.
 */
#ifndef HT_ALLOC_INLINED_H
#define HT_ALLOC_INLINED_H

#include <stddef.h>
#include <stdint.h>

#include "alloc/alloc_table.h"

struct elf_file;
struct elf_symbol;
struct plt_stubs;

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
