/* SPDX-License-Identifier: MIT */
/*
 * unwind_insn.h - what an x86-64 instruction does to the stack pointer and to rbp.
 */
#ifndef HT_UNWIND_INSN_H
#define HT_UNWIND_INSN_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stdint.h>

/* Frames of 256 KiB, in units of 8 bytes: more is not believed. */
#define INSN_OFF_CAP 32768LL

/* What is known: flags of struct insn_state. */
enum {
	INSN_IS_RSP_KNOWN = 2, /* CFA = rsp + rsp_off */
	INSN_IS_RBP_FRAME = 4, /* CFA = rbp + rbp_off */
	INSN_IS_RBP_SAVED = 8, /* caller's rbp at CFA + saved_off */
	INSN_IS_END = 16, /* the thread's first function */
};

/* What holds before the instruction at one address. Offsets in bytes. */
struct insn_state {
	int32_t rsp_off, rbp_off, saved_off;
	uint32_t flags;
};

/* st becomes what holds after the instruction. Jumps and calls change nothing. */
void insn_apply(struct insn_state *st, const cs_insn *insn);
bool insn_is_jump(csh cs, const cs_insn *insn);
/* A jump to what a register says, not to what the linker filled in (a PLT stub's). */
bool insn_is_switch(csh cs, const cs_insn *insn);
/* Nothing is executed behind it. Jumps are not meant. */
bool insn_ends_path(const cs_insn *insn);

#endif
