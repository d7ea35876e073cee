/* SPDX-License-Identifier: MIT */
/* placement_priv.h - shared by placement.c and tap_spot.c: decoding of code, instruction by instruction. */
#ifndef HT_ALLOC_PLACEMENT_PRIV_H
#define HT_ALLOC_PLACEMENT_PRIV_H

#include <capstone/capstone.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;

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

#endif
