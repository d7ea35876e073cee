/* SPDX-License-Identifier: MIT */
/*
 * fde_index.h - the beginnings of functions, from .eh_frame_hdr: the only table of functions that a stripped file still
 * has.
 */
#ifndef HT_UNWIND_FDE_INDEX_H
#define HT_UNWIND_FDE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;

struct fde_index {
	const uint8_t *table; /* pairs of 32-bit offsets from base */
	size_t cnt;
	uint64_t base;
};

/* Refers to ef. The index is empty when the file has no table. */
void fde_index_init(struct elf_file *ef, struct fde_index *ret);
/*
 * Find the last function that begins at or before vaddr: [*ret_start, *ret_end), where the end is the beginning of the
 * next one. False: vaddr is before the first, or in or behind the last one.
 */
bool fde_index_find(const struct fde_index *ix, uint64_t vaddr, uint64_t *ret_start,
		    uint64_t *ret_end);

#endif
