/* SPDX-License-Identifier: MIT */
/*
 * cfi.h - call frame information: reads CIEs and FDEs, runs their programs.
 *
 * Format: DWARF 5 section 6.4 for .debug_frame, the Linux Standard Base (core, "Exception
 * Frames") for .eh_frame. Knows nothing of a machine but the numbers of the three registers whose
 * rules are kept; everybody else's rules are decoded and dropped.
 *
 * Sections are somebody else's bytes: whatever they hold, nothing outside of them is read and
 * every loop ends after at most as many rounds as there are bytes.
 */
#ifndef HT_UNWIND_CFI_H
#define HT_UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CFI_CIE_CACHE_CNT 32
#define CFI_REMEMBER_CAP 16

/* Bytes that are left to read. A read past the end gives 0 and sets is_bad, which stays. */
struct cfi_cursor {
	const uint8_t *pos, *end;
	bool is_bad;
};

uint64_t cfi_u8(struct cfi_cursor *c);
uint64_t cfi_uint(struct cfi_cursor *c, unsigned int bytes);
uint64_t cfi_uleb(struct cfi_cursor *c);
int64_t cfi_sleb(struct cfi_cursor *c);
/* DW_EH_PE_*: pos_vaddr is the vaddr of c->pos, data_vaddr what DW_EH_PE_datarel is relative to. */
uint64_t cfi_pointer(struct cfi_cursor *c, uint8_t encoding, uint64_t pos_vaddr,
		     uint64_t data_vaddr);

/* Where FDEs are read from. */
struct cfi_section {
	const uint8_t *data;
	size_t bytes;
	uint64_t vaddr;
	bool is_debug_frame; /* else .eh_frame */
	bool ends_at_zero; /* the size is only a bound: an entry of length 0 is the end */
};

/* Of the byte that c stands at. */
uint64_t cfi_vaddr(const struct cfi_section *s, const struct cfi_cursor *c);

struct cfi_cie {
	size_t off; /* in the section; with is_used the key of the cache */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_reg;
	const uint8_t *insn, *insn_end;
	uint8_t fde_encoding;
	bool is_used, is_bad, is_signal, has_aug_data;
};

struct cfi_fde {
	size_t off; /* of the entry in its section */
	uint64_t pc, pc_end; /* vaddrs, pc <= pc_end: some functions are empty */
	const uint8_t *insn, *insn_end;
	const struct cfi_cie *cie; /* until the reader's next call */
};

struct cfi_reader {
	struct cfi_section section;
	size_t next_off;
	struct cfi_cie cie[CFI_CIE_CACHE_CNT];
};

void cfi_reader_init(struct cfi_reader *r, const struct cfi_section *section);
/*
 * The next FDE in file order: 1; 0 at the end; -EBADMSG: an entry that cannot be used, the reader
 * stands behind it (or at the end, when even its length is wrong).
 */
int cfi_next(struct cfi_reader *r, struct cfi_fde *ret);
/* The FDE at off, which an earlier cfi_next() gave. 0 or -EBADMSG. */
int cfi_fde_at(struct cfi_reader *r, size_t off, struct cfi_fde *ret);

/* What a row of the table says of one register, or of the CFA. */
enum cfi_rule_kind {
	CFI_SAME, /* also: nothing was said */
	CFI_UNDEFINED,
	CFI_OFFSET, /* saved at CFA + off */
	CFI_VAL_OFFSET, /* is CFA + off */
	CFI_EXPR, /* saved where expr says; for the CFA: is what expr says */
	CFI_VAL_EXPR,
	CFI_REGISTER, /* is in register off; for the CFA: register `reg` + off */
};

struct cfi_rule {
	uint32_t kind; /* enum cfi_rule_kind */
	uint32_t reg; /* CFA only */
	int64_t off;
	const uint8_t *expr;
	size_t expr_bytes;
};

/* DWARF numbers of the registers that a walk needs. */
struct cfi_regs {
	uint32_t sp, fp, ra;
};

struct cfi_row {
	struct cfi_rule cfa, sp, fp, ra;
};

/* row holds from pc up to the pc of the next call, the last one up to fde->pc_end. != 0 stops. */
typedef int cfi_row_fn(void *arg, uint64_t pc, const struct cfi_row *row);
/*
 * 0, what fn returned, or -EBADMSG with *ret_pc the address from which on nothing is known
 * because the program is damaged.
 */
int cfi_run(const struct cfi_section *section, const struct cfi_fde *fde,
	    const struct cfi_regs *regs, cfi_row_fn *fn, void *arg, uint64_t *ret_pc);

#endif
