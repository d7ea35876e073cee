/* SPDX-License-Identifier: MIT */
/*
 * unwind_table.h - .eh_frame (or .debug_frame) compiled into the rows that BPF walks.
 *
 * For the meaning of a row see struct ht_row in abi.h. A file is compiled once.
 */
#ifndef HT_ELF_UNWIND_TABLE_H
#define HT_ELF_UNWIND_TABLE_H

#include "base/std.h"
#include "heaptap/abi.h"

struct elf_file;

struct unwind_page {
	uint32_t first; /* index in rows */
	uint32_t row_cnt; /* 0: nothing is known in this page */
};

struct unwind_table {
	uint64_t first_page; /* vaddr >> HT_PAGE_SHIFT */
	uint32_t page_cnt;
	struct unwind_page *pages;
	struct ht_row *rows; /* the rows of a page are consecutive */
	uint32_t row_cnt;
	/* what could not be expressed: for doctor and the ledger */
	uint32_t fde_cnt, bad_fde_cnt, unsupported_row_cnt;
};

/* Code whose rows get a mark. */
struct unwind_mark {
	uint64_t start_vaddr, end_vaddr;
	uint8_t bits; /* HT_ROW_ALLOC or HT_ROW_THROWS */
};

struct unwind_options {
	const struct unwind_mark
		*marks; /* in any order; overlapping marks are joined, with the bits of all */
	size_t mark_cnt;
	bool described_only; /* no rows for code that has no frame information: for tests */
};

/*
 * opts: NULL: as zeros. -ENOENT: the file has no frame information; -ENOTSUP: no rows for this machine yet; -EFBIG: text
 * over more than HT_PAGES_CAP pages. ef is not needed afterwards.
 */
int unwind_table_build(struct elf_file *ef, const struct unwind_options *opts,
		       struct unwind_table **ret);
void unwind_table_free(struct unwind_table *t);

/*
 * fde_index.c: the beginnings of functions, from .eh_frame_hdr: the only table of functions that a stripped file still
 * has.
 */
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
