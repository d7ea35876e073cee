/* SPDX-License-Identifier: MIT */
/* unwind_table_priv.h - the parts of unwind_table.c: rules, scanned code, sections. */
#ifndef HT_ELF_UNWIND_TABLE_PRIV_H
#define HT_ELF_UNWIND_TABLE_PRIV_H

#include "base/std.h"
#include "heaptap/abi.h"

struct elf_file;
struct unwind_scanner;

/*
 * cfi.c: call frame information: reads CIEs and FDEs, runs their programs.
 *
 * Format: DWARF 5 section 6.4 for .debug_frame, the Linux Standard Base (core, "Exception Frames") for .eh_frame. The
 * only machine-dependent part are the numbers of the three registers whose rules are kept; the rules of all other
 * registers are decoded and dropped.
 *
 * Sections are somebody else's bytes: whatever they contain, nothing outside of them is read and every loop ends after
 * at most as many rounds as there are bytes.
 */

#define CFI_CIE_CACHE_CNT 32
#define CFI_REMEMBER_CAP 16

/* Bytes left to read. A read past the end returns 0 and sets is_bad, which is never cleared. */
struct cfi_cursor {
	const uint8_t *pos, *end;
	bool is_bad;
};

uint64_t cfi_u8(struct cfi_cursor *c);
int64_t cfi_sleb(struct cfi_cursor *c);
/* Read a DW_EH_PE_* pointer. pos_vaddr is the vaddr of c->pos; DW_EH_PE_datarel is relative to data_vaddr. */
uint64_t cfi_pointer(struct cfi_cursor *c, uint8_t encoding, uint64_t pos_vaddr,
		     uint64_t data_vaddr);

/* The section that FDEs are read from. */
struct cfi_section {
	const uint8_t *data;
	size_t bytes;
	uint64_t vaddr;
	bool is_debug_frame; /* else .eh_frame */
	bool ends_at_zero; /* the size is only a bound: an entry of length 0 ends it */
};

struct cfi_cie {
	size_t off; /* in the section; if is_used: the key in the cache */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_reg;
	const uint8_t *insn, *insn_end;
	uint8_t fde_encoding;
	bool is_used, is_bad, is_signal, has_aug_data;
};

struct cfi_fde {
	size_t off; /* of the entry in the section */
	uint64_t pc, pc_end; /* vaddrs, pc <= pc_end: some functions are empty */
	const uint8_t *insn, *insn_end;
	const struct cfi_cie *cie; /* valid until the reader's next call */
};

/* Zeros but for the section at first. */
struct cfi_reader {
	struct cfi_section section;
	size_t next_off;
	struct cfi_cie cie[CFI_CIE_CACHE_CNT];
};

/*
 * The next FDE in file order: 1; 0: the end; -EBADMSG: an entry that cannot be used; the reader is then behind it (or
 * at the end, when even its length is wrong).
 */
int cfi_next(struct cfi_reader *r, struct cfi_fde *ret);
/* Read the FDE at off, which an earlier cfi_next() returned. 0 or -EBADMSG. */
int cfi_fde_at(struct cfi_reader *r, size_t off, struct cfi_fde *ret);

/* The rule of one register, or of the CFA, in a row of the table. */
enum cfi_rule_kind {
	CFI_SAME, /* also: there is no rule */
	CFI_UNDEFINED,
	CFI_OFFSET, /* saved at CFA + off */
	CFI_VAL_OFFSET, /* the value is CFA + off */
	CFI_EXPR, /* saved at the address that expr computes; for the CFA: its value */
	CFI_VAL_EXPR,
	CFI_REGISTER, /* the value is in register off; for the CFA: register `reg` + off */
};

struct cfi_rule {
	uint32_t kind; /* enum cfi_rule_kind */
	uint32_t reg; /* CFA only */
	int64_t off;
	const uint8_t *expr;
	size_t expr_bytes;
};

/* DWARF numbers of the registers that are needed to unwind. */
struct cfi_regs {
	uint32_t sp, fp, ra;
};

struct cfi_row {
	struct cfi_rule cfa, sp, fp, ra;
};

/* row is valid from pc up to the pc of the next call, the last one up to fde->pc_end. != 0 stops. */
typedef int cfi_row_fn(void *arg, uint64_t pc, const struct cfi_row *row);
/* Return 0, the value that fn returned, or -EBADMSG: the program is damaged, and from *ret_pc on nothing is known. */
int cfi_run(const struct cfi_section *section, const struct cfi_fde *fde,
	    const struct cfi_regs *regs, cfi_row_fn *fn, void *arg, uint64_t *ret_pc);

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

/* Finds the frame information in an ELF file. */

/*
 * Find .eh_frame by its section header or, if those were stripped, through PT_GNU_EH_FRAME, which the program itself
 * needs to throw exceptions. -ENOENT: there is none. Owned by ef.
 */
int unwind_eh_frame(struct elf_file *ef, struct cfi_section *ret);
/* Find .debug_frame. -ENOENT; -EFBIG and the like from decompression. */
int unwind_debug_frame(struct elf_file *ef, struct cfi_section *ret);

/*
 * Addresses at which functions may begin, from symbol tables and relocations, sorted; some of them are not code at all.
 * The caller frees *ret, which is NULL if there are none.
 */
int unwind_entries(struct elf_file *ef, uint64_t **ret, size_t *ret_cnt);

#endif
