/* SPDX-License-Identifier: MIT */
/*
 * alloc_shape.c - finds a function of jemalloc that has no name by what its code does.
 *
 * A stripped Rust program exports malloc and free of its jemalloc, and frees by sdallocx(p, size, flags), which has no
 * name. What free() does when all goes well, it does as well (jemalloc 5.2 and 5.3): it puts its first argument on the
 * thread's stack of free blocks,
 *	mov %rdi,-8(%r9)
 * and then stores the sum of freed bytes, which is at a fixed place of the thread's data:
 *	mov %r11,%fs:0x348(%r8)
 * No function stores at this place but those that free: so one that stores there, after it has put its first argument
 * on a stack, frees that argument. It is told from copies of free() by the comparison of its second argument with the
 * largest size that has a fast way (4096).
 *
 * Searched is the code behind free(), as far as one object file reaches.
 */
#include "alloc/allocators_priv.h"

#include <errno.h>
#include <stdbool.h>

#include "alloc/placement_priv.h"
#include "elf/elf_file.h"

#define SEARCH_BYTES (64 << 10)
#define LOOKED_AT_BYTES 512 /* of a function */
#define FAST_SIZE_BYTES 4096
#define RSI 6
#define RDI 7

struct shape {
	uint32_t holders; /* bit n: register n holds the first argument */
	bool has_pushed; /* the first argument was put on a stack */
	bool compares_size;
	bool is_freed; /* stored at freed_disp after that */
	int64_t freed_disp; /* of the last store into the thread's data */
};

static bool holds_arg(const struct shape *sh, const cs_x86_op *op)
{
	int reg = op->type == X86_OP_REG && op->size == 8 ? insn_reg_number(op->reg) : -1;

	return reg >= 0 && sh->holders >> reg & 1;
}

/* A register is overwritten; by the first argument, if `from` holds that. */
static void look_at_target(const cs_insn *in, const cs_x86_op *from, int to, struct shape *sh)
{
	bool is_copy = in->id == X86_INS_MOV && holds_arg(sh, from);

	if (to < 0 || in->id == X86_INS_CMP || in->id == X86_INS_TEST)
		return;
	sh->holders &= ~(1U << to);
	sh->holders |= (uint32_t)is_copy << to;
}

/* Operands are in AT&T's order. */
static void look_at(const cs_insn *in, int64_t want_disp, struct shape *sh)
{
	const cs_x86 *x = &in->detail->x86;
	const cs_x86_op *from = &x->operands[0],
			*to = &x->operands[x->op_count ? x->op_count - 1 : 0];
	int reg = to->type == X86_OP_REG ? insn_reg_number(to->reg) : -1;
	bool is_store = in->id == X86_INS_MOV && x->op_count == 2 && from->type == X86_OP_REG &&
			to->type == X86_OP_MEM;

	if (in->id == X86_INS_CMP && from->type == X86_OP_IMM && from->imm == FAST_SIZE_BYTES &&
	    reg == RSI)
		sh->compares_size = true;
	if (x->op_count)
		look_at_target(in, from, reg, sh);
	if (!is_store || from->size != 8)
		return;
	if (to->mem.segment == X86_REG_INVALID && to->mem.disp == -8)
		sh->has_pushed |= holds_arg(sh, from);
	if (to->mem.segment != X86_REG_FS || !sh->has_pushed)
		return;
	sh->freed_disp = to->mem.disp;
	sh->is_freed |= to->mem.disp == want_disp;
}

static int read_shape(const struct elf_file *ef, uint64_t vaddr, uint64_t bytes, int64_t want_disp,
		      struct shape *ret)
{
	struct code code;
	const uint8_t *p;
	cs_insn *in;
	csh h;
	int err = code_open(ef, vaddr, bytes < LOOKED_AT_BYTES ? bytes : LOOKED_AT_BYTES, &code);

	*ret = (struct shape){ .holders = 1U << RDI, .freed_disp = INT64_MIN };
	if (!err)
		err = decoder_open(true, &h, &in);
	if (err)
		return err;
	p = code.bytes;
	while (cs_disasm_iter(h, &p, &code.cnt, &code.vaddr, in))
		look_at(in, want_disp, ret);
	decoder_close(h, in);
	return 0;
}

int alloc_shape_find(const struct elf_file *ef, const struct fde_index *fdes, uint64_t free_vaddr,
		     uint64_t free_bytes, struct alloc_shape *ret)
{
	uint64_t at = free_vaddr + free_bytes, start, end;
	struct shape of_free, other;
	int err = read_shape(ef, free_vaddr, free_bytes, INT64_MIN, &of_free);

	ret->cnt = 0;
	ret->is_free = !err && of_free.freed_disp != INT64_MIN;
	if (err || of_free.freed_disp == INT64_MIN)
		return err == -ENOMEM ? err : 0;
	while (at < free_vaddr + SEARCH_BYTES && ret->cnt < ALLOC_SHAPE_CAP &&
	       fde_index_find(fdes, at, &start, &end)) {
		at = end;
		err = read_shape(ef, start, end - start, of_free.freed_disp, &other);
		if (err)
			break;
		if (!other.is_freed || !other.compares_size)
			continue;
		ret->vaddr[ret->cnt] = start;
		ret->bytes[ret->cnt++] = end - start;
	}
	return err == -ENOMEM ? err : 0;
}
