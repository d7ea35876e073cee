/* SPDX-License-Identifier: MIT */
/*
 * tap_spot.h - where a function can be tapped: which one instruction of it becomes a jump (tap/tap_code.h).
 *
 * All calls pass there once, with the arguments where they were at the entry, and what lies on the stack above it is
 * known, so that the state of the entry can be had back. An instruction of five bytes or more has room for the long
 * jump; a shorter one becomes a short jump to a gap: bytes near by that no execution reaches.
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

/* What has to be done for the instruction to do the same in another place. */
enum tap_move { TAP_MOVE_COPY, TAP_MOVE_RIP, TAP_MOVE_JUMP, TAP_MOVE_BRANCH };

struct tap_spot {
	uint64_t vaddr; /* of the instruction; 0: there is none, see why */
	uint64_t target_vaddr; /* what a rip-relative operand is, where a branch goes */
	uint64_t gap_vaddr; /* of the long jump; 0: it is at vaddr */
	uint8_t insn[TAP_INSN_CAP];
	uint8_t gap[TAP_LONG_JUMP_BYTES]; /* what stands there */
	uint8_t insn_bytes;
	uint8_t move; /* enum tap_move */
	uint8_t disp_at; /* TAP_MOVE_RIP: of the 32-bit displacement in the instruction */
	uint8_t condition; /* TAP_MOVE_BRANCH: as in its opcode */
	/* What to do for the entry's rsp and callee-saved registers, in this order: pop the register of that number,
	 * or, from TAP_UNDO_ADD up, add 8 times what is above it to rsp. */
	uint8_t undo_cnt;
	uint8_t undo[TAP_UNDO_CAP];
	char why[TAP_WHY_BYTES];
};

/* Gaps that are taken already: of one file. */
#define TAP_GAPS_CAP 64
struct tap_gaps {
	uint64_t vaddr[TAP_GAPS_CAP];
	size_t cnt;
};

struct tap_spot_request {
	uint64_t fn_vaddr, fn_bytes;
	/* Only argument 0 has to be there, a NULL check of it may be passed, and the entry's state is not wanted. */
	bool is_free;
};

/* -ENOENT: fn_vaddr is not in the file; -ENOTSUP: the machine is not known; -EFBIG: the file is too costly. */
int tap_spot_find(const struct elf_file *ef, const struct fde_index *fdes,
		  const struct elf_symbols *syms, const struct tap_spot_request *req,
		  struct tap_gaps *gaps, struct tap_spot *ret);

#endif
