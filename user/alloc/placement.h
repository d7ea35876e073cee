/* SPDX-License-Identifier: MIT */
/*
 * placement.h - where in a function to put a uprobe, and what else its code tells.
 */
#ifndef HT_ALLOC_PLACEMENT_H
#define HT_ALLOC_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;

#define PLACEMENT_TEXT_BYTES 64

struct placement_request {
	uint64_t fn_vaddr;
	uint64_t fn_bytes; /* 0 = unknown: bounded by the next symbol or 4 KiB */
	uint32_t arg_mask; /* bit i: argument i (rdi, rsi, rdx, ...) must still be unmodified */
	bool needs_entry_sp; /* a return probe follows: rsp must be that of the entry */
	bool null_check_ok; /* a NULL check of argument 0 may be passed (free) */
	bool entry_only; /* +0 and nothing else (for comparison) */
	bool multibyte_nop_ok; /* this kernel emulates long nops (never nop5) */
};

struct placement {
	uint64_t vaddr; /* where the probe goes */
	bool is_emulated; /* false: single-stepped, at +0 */
	bool skips_null; /* behind a NULL check */
	/* Which argument register (0 rdi, 1 rsi, 2 rdx, 3 rcx, 4 r8, 5 r9) holds argument i at
	 * vaddr. i itself unless the function has moved it there before the probe. */
	uint8_t arg_at[6];
	char insn[PLACEMENT_TEXT_BYTES]; /* "push %r12" as it stands at vaddr */
	char why[PLACEMENT_TEXT_BYTES]; /* when not emulated: what stood in the way */
};

/* -ENOENT: fn_vaddr is not in the file; -ENOTSUP: the machine is not known; -EFBIG: the file is too costly. */
int placement_find(const struct elf_file *ef, const struct placement_request *req,
		   struct placement *ret);

/*
 * What the code of a function does, by a linear walk over [fn, fn + bytes). Used to see which
 * entry points end in another one.
 */
#define CODE_BRANCHES_CAP 64
struct branch_out {
	uint64_t target_vaddr; /* in the PLT: the stub. is_slot: the GOT slot jumped through */
	bool is_jump; /* a tail call (also a conditional one); else a call */
	bool is_slot;
};
struct code_shape {
	struct branch_out out[CODE_BRANCHES_CAP]; /* direct branches that leave the function */
	size_t out_cnt;
	bool is_cut; /* out was full */
	uint32_t insn_cnt;
	uint32_t ret_cnt;
	uint32_t ret_zero_cnt; /* of these: preceded by xor eax,eax, so they return NULL */
	bool has_indirect; /* calls or jumps through a register or a table */
	bool has_indirect_jump;
};
/* -ENOENT: fn_vaddr is not in the file; -ENOTSUP: the machine is not known; -EFBIG: the file is too costly. */
int placement_shape(const struct elf_file *ef, uint64_t fn_vaddr, uint64_t fn_bytes,
		    struct code_shape *ret);

#endif
