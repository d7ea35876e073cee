/* SPDX-License-Identifier: MIT */
/* placement_priv.h - shared by placement.c and tap_spot.c: decoding of code, instruction by instruction. */
#ifndef HT_ALLOC_PLACEMENT_PRIV_H
#define HT_ALLOC_PLACEMENT_PRIV_H

#include <capstone/capstone.h>

#include "base/std.h"

struct elf_file;
struct elf_symbols;
struct fde_index;
struct tap_gaps;

/* The kind of an instruction, by its bytes alone. */
enum kind {
	KIND_OTHER,
	KIND_PUSH,
	KIND_NOP, /* emulated everywhere */
	KIND_LONG_NOP,
	KIND_JMP,
	KIND_CALL,
	KIND_JCC,
	KIND_RET,
	KIND_INDIRECT, /* call through anything except a slot at a fixed address */
	KIND_INDIRECT_JMP, /* the same for jmp */
	KIND_SLOT_JMP, /* jmp *slot(%rip) */
	KIND_SLOT_CALL,
};

struct code {
	const uint8_t *bytes;
	size_t cnt;
	uint64_t vaddr;
};

/* *ret_target: target of a direct branch, or the slot; else 0. */
enum kind insn_classify(const cs_insn *in, uint64_t *ret_target);
/* Number of the 64-bit register (as in the encoding) of a general register of any width, -1: none. */
int insn_reg_number(unsigned int reg);
#define RSP 4

/* bytes 0: not known. -ENOTSUP: machine not known; -ENOENT: not in the file; -EFBIG: too costly. */
int code_open(const struct elf_file *ef, uint64_t vaddr, uint64_t bytes, struct code *ret);
/* Find the lowest address above the entry that a jump inside the function goes to. */
int code_lowest_jump_target(const struct code *c, uint64_t *ret);

int decoder_open(bool detail, csh *ret, cs_insn **ret_insn);
void decoder_close(csh h, cs_insn *in);

/* tap_gap.c: nearby bytes that are never executed. */

#define TAP_RUNS_CAP 64

struct tap_run {
	uint64_t start, end;
};

struct tap_gap_search {
	const struct elf_file *ef;
	const struct fde_index *fdes;
	const struct elf_symbols *syms;
	const struct tap_gaps *gaps;
	uint64_t fn_vaddr;
	struct tap_run run[TAP_RUNS_CAP];
	size_t run_cnt;
	bool has_runs; /* run[] was filled */
};

static inline bool insn_is_nop(const cs_insn *in)
{
	return in->id == X86_INS_NOP ||
	       (in->size == 2 && in->bytes[0] == 0x66 && in->bytes[1] == 0x90);
}

/* Find the function at vaddr. Static programs have no table of functions; their symbols serve as one. */
bool tap_function_at(const struct fde_index *fdes, const struct elf_symbols *syms, uint64_t vaddr,
		     uint64_t *ret_start, uint64_t *ret_end);
/* Find a gap for a short jump that ends at from_vaddr; 0: none. */
uint64_t tap_gap_find(struct tap_gap_search *gs, uint64_t from_vaddr);

#endif
