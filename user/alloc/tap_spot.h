/* SPDX-License-Identifier: MIT */
/*
 * tap_spot.h - where a function can be tapped: the one instruction in it that becomes a jump (tap/tap_code.h).
 *
 * Every call passes the spot once, with the arguments where they were at the entry. What the function has put on the
 * stack until there is known, so the state of the entry can be restored. An instruction of five bytes or more has room
 * for the long jump. A shorter one becomes a short jump to a gap: nearby bytes that are never executed.
 */
#ifndef HT_ALLOC_TAP_SPOT_H
#define HT_ALLOC_TAP_SPOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;
struct elf_symbols;
struct fde_index;

#define TAP_INSN_CAP 16
#define TAP_LONG_JUMP_BYTES 5
#define TAP_SHORT_JUMP_BYTES 2
#define TAP_WHY_BYTES 128
#define TAP_UNDO_CAP 12
#define TAP_UNDO_ADD 16

/* What must be changed in the instruction so that it does the same in another place. */
enum tap_move { TAP_MOVE_COPY, TAP_MOVE_RIP, TAP_MOVE_JUMP, TAP_MOVE_BRANCH };

struct tap_spot {
	uint64_t vaddr; /* of the instruction; 0: there is none, for the reason in why */
	uint64_t target_vaddr; /* address that a rip-relative operand or a branch refers to */
	uint64_t gap_vaddr; /* where the long jump is, if not at vaddr; else 0 */
	uint8_t insn[TAP_INSN_CAP];
	uint8_t gap[TAP_LONG_JUMP_BYTES]; /* the original bytes there */
	uint8_t insn_bytes;
	uint8_t move; /* enum tap_move */
	uint8_t disp_at; /* TAP_MOVE_RIP: place of the 32-bit displacement in the instruction */
	uint8_t condition; /* TAP_MOVE_BRANCH: the condition in its opcode */
	/* Steps, in this order, that restore the entry's rsp and callee-saved registers: pop the register with that
	 * number; from TAP_UNDO_ADD up: add 8 times the rest to rsp. */
	uint8_t undo_cnt;
	uint8_t undo[TAP_UNDO_CAP];
	char why[TAP_WHY_BYTES];
};

/* Gaps of one file that are already in use. */
#define TAP_GAPS_CAP 64
struct tap_gaps {
	uint64_t vaddr[TAP_GAPS_CAP];
	size_t cnt;
};

struct tap_spot_request {
	uint64_t fn_vaddr, fn_bytes;
	/* Only argument 0 is needed, a NULL check of it may be passed, and the entry's state is not needed. */
	bool is_free;
};

/* -ENOENT: fn_vaddr is not in the file; -ENOTSUP: the machine is not known; -EFBIG: the file is too costly. */
int tap_spot_find(const struct elf_file *ef, const struct fde_index *fdes,
		  const struct elf_symbols *syms, const struct tap_spot_request *req,
		  struct tap_gaps *gaps, struct tap_spot *ret);

#endif
