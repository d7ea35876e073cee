/* SPDX-License-Identifier: MIT */
/*
 * placement.h - where in a function to put a uprobe (sources.md 2).
 */
#ifndef HT_ELF_PLACEMENT_H
#define HT_ELF_PLACEMENT_H

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
	bool multibyte_nop_ok; /* this kernel emulates long nops (never nop5) */
};

struct placement {
	uint64_t vaddr; /* where the probe goes */
	bool is_emulated; /* false: single-stepped, at +0 */
	bool skips_null; /* behind a NULL check */
	char insn[PLACEMENT_TEXT_BYTES]; /* "push %r12" as it stands at vaddr */
	char why[PLACEMENT_TEXT_BYTES]; /* when not emulated: what stood in the way */
};

/* -ENOENT: fn_vaddr is not in the file; -ENOTSUP: the machine is not known. */
int placement_find(const struct elf_file *ef, const struct placement_request *req,
		   struct placement *ret);

/*
 * Direct calls and jumps that leave [fn, fn + bytes): up to cap targets. Used to see which entry
 * points end in another one. Returns the number found (at most cap) or a negative errno. Targets
 * in the PLT are given as the PLT stub's vaddr.
 */
struct branch_out {
	uint64_t target_vaddr;
	bool is_jump; /* a tail call; else a call */
};
int placement_branches_out(const struct elf_file *ef, uint64_t fn_vaddr, uint64_t fn_bytes,
			   struct branch_out *ret, size_t cap);

#endif
