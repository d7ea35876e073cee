/* SPDX-License-Identifier: MIT */
/* alloc_shape.h - finds a function of jemalloc that has no name by what its code does. */
#ifndef HT_ALLOC_SHAPE_H
#define HT_ALLOC_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/fde_index.h"

struct elf_file;

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

#endif
