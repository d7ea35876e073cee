/* SPDX-License-Identifier: MIT */
/* unwind_table_priv.h - the parts of unwind_table.c: rules, scanned code, sections. */
#ifndef HT_UNWIND_UNWIND_TABLE_PRIV_H
#define HT_UNWIND_UNWIND_TABLE_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heaptap/abi.h"
#include "unwind/cfi.h"

struct elf_file;
struct unwind_scanner;

/*
 * unwind_rule.c: converts the CFI of a pc to one struct ht_row. Everything that depends on the machine is here:
 * register numbers, and which rules a row can express.
 */

struct unwind_arch {
	int machine; /* EM_* */
	struct cfi_regs regs;
	/* pc_lo is left 0. Rules that a row cannot express become HT_CFA_UNSUPPORTED. */
	struct ht_row (*row)(const struct cfi_row *row, bool is_signal);
};

/* NULL: there are no rows for this machine yet. */
const struct unwind_arch *unwind_arch_find(int machine);

/*
 * unwind_scan.c: unwind rows for code without frame information, by following its instructions.
 */

/* Larger pieces of code are not scanned (-EFBIG). */
#define UNWIND_SCAN_BYTES_CAP (2U << 20)

/* -ENOTSUP: no decoder for the machine (EM_*). */
int unwind_scanner_open(int machine, struct unwind_scanner **ret);
void unwind_scanner_close(struct unwind_scanner *s);

struct unwind_code {
	const uint8_t *data;
	size_t bytes;
	uint64_t vaddr;
	/* known beginnings of functions, sorted; others are found */
	const uint64_t *entries;
	size_t entry_cnt;
};

/* row is valid from vaddr up to that of the next call; vaddr rises, all within the code. != 0 stops. */
typedef int unwind_scan_fn(void *arg, uint64_t vaddr, const struct ht_row *row);
int unwind_scan(struct unwind_scanner *s, const struct unwind_code *code, unwind_scan_fn *fn,
		void *arg);

/* unwind_sections.c: finds the frame information in an ELF file. */

/*
 * Find .eh_frame by its section header or, if those were stripped, through PT_GNU_EH_FRAME, which the program itself
 * needs to throw exceptions. -ENOENT: there is none. Owned by ef.
 */
int unwind_eh_frame(struct elf_file *ef, struct cfi_section *ret);
/* Find .debug_frame. -ENOENT; -EFBIG and the like from decompression. */
int unwind_debug_frame(struct elf_file *ef, struct cfi_section *ret);
/* vaddr of the first instruction; -ENOENT: the file is not a program that is started. */
int unwind_entry(const struct elf_file *ef, uint64_t *ret_vaddr);

/*
 * Addresses at which functions may begin, from symbol tables and relocations, sorted; some of them are not code at all.
 * The caller frees *ret, which is NULL if there are none.
 */
int unwind_entries(struct elf_file *ef, uint64_t **ret, size_t *ret_cnt);

#endif
