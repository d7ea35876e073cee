/* SPDX-License-Identifier: MIT */
/*
 * tap_spot.h - where a function can be tapped: the one instruction in it that becomes a jump (tap/tap_code.h).
 *
 * Every call passes the spot once, with the arguments where they were at the entry. The instructions before it can be
 * run again elsewhere, and what they have put on the stack is known, so the state of the entry can be restored. An
 * instruction of five bytes or more has room for the long jump. A shorter one becomes a short jump to a gap: nearby
 * bytes that are never executed.
 */
#ifndef HT_ALLOC_TAP_SPOT_H
#define HT_ALLOC_TAP_SPOT_H

#include "base/std.h"

struct elf_file;
struct elf_symbols;
struct fde_index;

#define TAP_INSN_CAP 15
#define TAP_LONG_JUMP_BYTES 5
#define TAP_SHORT_JUMP_BYTES 2
#define TAP_WHY_BYTES 128
#define TAP_UNDO_CAP 12
#define TAP_UNDO_ADD 16
#define TAP_UNDO_BYTES_CAP 120 /* of one step */
#define TAP_BEFORE_CAP 16

/* What must be changed in an instruction so that it does the same in another place. */
enum tap_move {
	TAP_MOVE_COPY,
	TAP_MOVE_RIP,
	TAP_MOVE_JUMP,
	TAP_MOVE_BRANCH,
	TAP_MOVE_CALL, /* returns to where it does in the file */
	/* target_vaddr is a slot with an address. */
	TAP_MOVE_SLOT_CALL,
	TAP_MOVE_SLOT_JUMP,
};

struct tap_insn {
	uint64_t target_vaddr; /* address that a rip-relative operand, a branch or a call refers to */
	uint8_t bytes[TAP_INSN_CAP];
	uint8_t byte_cnt;
	uint8_t move; /* enum tap_move */
	uint8_t disp_at; /* TAP_MOVE_RIP: place of the 32-bit displacement in the instruction */
	uint8_t condition; /* TAP_MOVE_BRANCH: the condition in its opcode */
	uint8_t reserved[5];
};

struct tap_spot {
	uint64_t vaddr; /* of the instruction; 0: there is none, for the reason in why */
	uint64_t fn_vaddr; /* the function it is in: the one asked for, or the one that that one only jumps to */
	uint64_t gap_vaddr; /* where the long jump is, if not at vaddr; else 0 */
	struct tap_insn insn;
	/* If the spot is behind a conditional jump, that one leads to a way in as well; 0: it is not. */
	uint64_t branch_vaddr;
	uint64_t branch_gap_vaddr; /* where it leads, if it is a short one */
	struct tap_insn branch;
	uint8_t gap[TAP_LONG_JUMP_BYTES],
		branch_gap[TAP_LONG_JUMP_BYTES]; /* the original bytes there */
	/* The jump begins behind the first byte, which stays: a prefix that makes no difference to a jump (REX), or the
	 * same jump with another target. Another tool may then put a breakpoint on it, and the byte back. */
	uint8_t keeps_prefix, keeps_opcode; /* 0 or 1 */
	/* Another tool's breakpoint on this instruction takes its calls past the tap. */
	uint8_t is_watched;
	/* The instructions passed before write r10 or r11, or it is not a function of the file's interface. */
	uint8_t uses_scratch;
	/* Instructions from the entry to the spot, without those that do nothing. */
	struct tap_insn before[TAP_BEFORE_CAP];
	uint8_t before_cnt;
	/* 1 + index of the one in before[] that makes the flags that are read behind it; 0: none are */
	uint8_t flags_insn;
	/* Steps, in this order, that restore the entry's rsp and callee-saved registers: pop the register with that
	 * number; from TAP_UNDO_ADD up: add 8 times the rest to rsp. */
	uint8_t undo_cnt;
	uint8_t undo[TAP_UNDO_CAP];
	char why[TAP_WHY_BYTES];
};

/* The bytes that change: at vaddr + *ret_off, *ret_cnt of them; and of the branch. */
void tap_spot_changed(const struct tap_spot *s, uint8_t *ret_off, uint8_t *ret_cnt);
void tap_branch_changed(const struct tap_spot *s, uint8_t *ret_off, uint8_t *ret_cnt);
/* Are all counts within bounds? For one that came from another process. */
bool tap_spot_is_sound(const struct tap_spot *s);

/* Gaps of one file that are already in use. */
#define TAP_GAPS_CAP 64
struct tap_gaps {
	uint64_t vaddr[TAP_GAPS_CAP];
	size_t cnt;
};

#define TAP_PROBES_CAP 2
struct tap_spot_request {
	uint64_t fn_vaddr, fn_bytes;
	uint32_t arg_mask; /* bit i: argument i (rdi, rsi, ...) is needed */
	/* Only argument 0 is needed, a NULL check of it may be passed, and the entry's state is not needed. */
	bool is_free;
	/* If the function is nothing but a jump, search the function that it jumps to as well. */
	bool follows;
	uint64_t probe_vaddr[TAP_PROBES_CAP]; /* where heaptap puts its own probes into it */
	uint64_t next_vaddr; /* another symbol begins there, behind fn_vaddr; 0: not known */
};

/* -ENOENT: fn_vaddr is not in the file; -ENOTSUP: the machine is not known; -EFBIG: the file is too costly. */
int tap_spot_find(const struct elf_file *ef, const struct fde_index *fdes,
		  const struct elf_symbols *syms, const struct tap_spot_request *req,
		  struct tap_gaps *gaps, struct tap_spot *ret);

#endif
