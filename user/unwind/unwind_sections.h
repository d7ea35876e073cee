/* SPDX-License-Identifier: MIT */
/*
 * unwind_sections.h - where in an ELF file the frame information is.
 */
#ifndef HT_UNWIND_SECTIONS_H
#define HT_UNWIND_SECTIONS_H

#include "unwind/cfi.h"

struct elf_file;

/*
 * .eh_frame by its section header, or, when those were stripped, through PT_GNU_EH_FRAME, which
 * the program itself needs to throw exceptions. -ENOENT: there is none. Owned by ef.
 */
int unwind_eh_frame(struct elf_file *ef, struct cfi_section *ret);
/* -ENOENT; -EFBIG and the like from decompression. */
int unwind_debug_frame(struct elf_file *ef, struct cfi_section *ret);
/* vaddr of the first instruction; -ENOENT: the file is not one that is started. */
int unwind_entry(const struct elf_file *ef, uint64_t *ret_vaddr);

/*
 * Where functions may begin: what symbol tables and relocations say, sorted, with addresses that
 * are not code at all. *ret is the caller's to free, NULL if none.
 */
int unwind_entries(struct elf_file *ef, uint64_t **ret, size_t *ret_cnt);
/*
 * The instructions of [vaddr, vaddr + bytes), or as many of them as the file holds in one piece.
 * NULL: none.
 */
const uint8_t *unwind_code(const struct elf_file *ef, uint64_t vaddr, uint64_t bytes,
			   size_t *ret_bytes);

#endif
