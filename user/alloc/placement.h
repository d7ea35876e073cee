/* SPDX-License-Identifier: MIT */
/*
 * placement.h - where in a function to put a uprobe, and other facts about its code.
 */
#ifndef HT_ALLOC_PLACEMENT_H
#define HT_ALLOC_PLACEMENT_H

#include "base/std.h"

struct elf_file;

#define PLACEMENT_TEXT_BYTES 64

struct placement_request {
	uint64_t fn_vaddr;
	uint64_t fn_bytes; /* 0 = unknown: 4 KiB are looked at */
	uint32_t arg_mask; /* bit i: argument i (rdi, rsi, rdx, ...) must still be unmodified */
	bool needs_entry_sp; /* a return probe follows: rsp must be the same as at the entry */
	bool null_check_ok; /* the probe may stand behind a NULL check of argument 0 (free) */
	bool entry_only; /* only +0 (for comparison) */
	bool multibyte_nop_ok; /* this kernel emulates long nops (never nop5) */
};

struct placement {
	uint64_t vaddr; /* where the probe goes */
	bool is_emulated; /* false: single-stepped, at +0 */
	bool skips_null; /* it stands behind a NULL check */
	/* The argument register (0 rdi, 1 rsi, 2 rdx, 3 rcx, 4 r8, 5 r9) that holds argument i at vaddr. It is i
	 * unless the function has moved the argument before the probe. */
	uint8_t arg_at[6];
	char insn[PLACEMENT_TEXT_BYTES]; /* the instruction at vaddr: "push %r12" */
	char why[PLACEMENT_TEXT_BYTES]; /* if not emulated: the obstacle */
};

/* -ENOENT: fn_vaddr is not in the file; -ENOTSUP: the machine is not known; -EFBIG: the file is too costly. */
int placement_find(const struct elf_file *ef, const struct placement_request *req,
		   struct placement *ret);

/*
 * Facts about the code of a function, from a linear walk over [fn, fn + bytes). Used to see which entry
 * points end in another one.
 */
#define CODE_BRANCHES_CAP 64
struct branch_out {
	uint64_t target_vaddr; /* in the PLT: the stub. is_slot: the GOT slot in the jump */
	bool is_jump; /* a tail call (also a conditional one); else a call */
	bool is_slot;
};
struct code_shape {
	struct branch_out out[CODE_BRANCHES_CAP]; /* direct branches that leave the function */
	size_t out_cnt;
	bool is_cut; /* out was full */
	uint32_t insn_cnt;
	uint32_t ret_cnt;
	uint32_t ret_zero_cnt; /* those preceded by xor eax,eax, so that they return NULL */
	bool has_indirect; /* calls or jumps through a register or a table */
	bool has_indirect_jump;
};
/* -ENOENT: fn_vaddr is not in the file; -ENOTSUP: the machine is not known; -EFBIG: the file is too costly. */
int placement_shape(const struct elf_file *ef, uint64_t fn_vaddr, uint64_t fn_bytes,
		    struct code_shape *ret);

#endif
