/* SPDX-License-Identifier: MIT */
/*
 * unwind_insn.c - see unwind_insn.h.
 *
 * Only the ways in which compilers move rsp are followed. Whatever else writes it makes it
 * unknown, and it is known again when it is set from a frame pointer. So does what takes the return
 * address off, to put arguments below it: only a frame pointer leads on then.
 */
#include "unwind/unwind_insn.h"

static bool is_reg(const cs_x86_op *op, x86_reg reg)
{
	return op->type == X86_OP_REG && op->reg == reg;
}

static void rsp_move(struct insn_state *st, int64_t bytes)
{
	if (bytes < -INSN_OFF_CAP * 8 || bytes > INSN_OFF_CAP * 8)
		st->flags &= ~(uint32_t)INSN_IS_RSP_KNOWN;
	else
		st->rsp_off -= (int32_t)bytes;
	if (st->rsp_off < 8 || st->rsp_off > INSN_OFF_CAP * 8)
		st->flags &= ~(uint32_t)INSN_IS_RSP_KNOWN;
	if (!(st->flags & INSN_IS_RSP_KNOWN))
		st->rsp_off = 0;
}

/* rsp = rbp + bytes */
static void rsp_from_rbp(struct insn_state *st, int64_t bytes)
{
	if (!(st->flags & INSN_IS_RBP_FRAME)) {
		st->flags &= ~(uint32_t)INSN_IS_RSP_KNOWN;
		return;
	}
	st->flags |= INSN_IS_RSP_KNOWN;
	st->rsp_off = st->rbp_off;
	rsp_move(st, bytes);
}

static void rbp_popped(struct insn_state *st)
{
	st->flags &= ~(uint32_t)(INSN_IS_RBP_FRAME | INSN_IS_RBP_SAVED);
	st->saved_off = 0;
}

static void do_push(struct insn_state *st, const cs_x86 *x)
{
	rsp_move(st, -8);
	if (x->op_count && is_reg(&x->operands[0], X86_REG_RBP) &&
	    (st->flags & INSN_IS_RSP_KNOWN) && !(st->flags & INSN_IS_RBP_SAVED) &&
	    st->rsp_off <= 8 * 120) {
		st->flags |= INSN_IS_RBP_SAVED;
		st->saved_off = -st->rsp_off;
	}
}

static void do_pop(struct insn_state *st, const cs_x86 *x)
{
	if (x->op_count && is_reg(&x->operands[0], X86_REG_RSP)) {
		st->flags &= ~(uint32_t)INSN_IS_RSP_KNOWN;
		return;
	}
	if (x->op_count && is_reg(&x->operands[0], X86_REG_RBP))
		rbp_popped(st);
	rsp_move(st, 8);
}

/* An instruction that writes rsp. */
static void write_rsp(struct insn_state *st, unsigned int id, const cs_x86 *x)
{
	const cs_x86_op *src = &x->operands[1];

	if (x->op_count == 2 && src->type == X86_OP_IMM && id == X86_INS_SUB)
		rsp_move(st, -src->imm);
	else if (x->op_count == 2 && src->type == X86_OP_IMM && id == X86_INS_ADD)
		rsp_move(st, src->imm);
	else if (id == X86_INS_LEA && src->mem.index == X86_REG_INVALID &&
		 src->mem.base == X86_REG_RSP)
		rsp_move(st, src->mem.disp);
	else if (id == X86_INS_LEA && src->mem.index == X86_REG_INVALID &&
		 src->mem.base == X86_REG_RBP)
		rsp_from_rbp(st, src->mem.disp);
	else if (id == X86_INS_MOV && is_reg(src, X86_REG_RBP))
		rsp_from_rbp(st, 0);
	else
		st->flags &= ~(uint32_t)INSN_IS_RSP_KNOWN;
}

/* An instruction that writes rbp, other than pop. */
static void write_rbp(struct insn_state *st, unsigned int id, const cs_x86 *x)
{
	const cs_x86_op *src = &x->operands[1];

	st->flags &= ~(uint32_t)INSN_IS_RBP_FRAME;
	if (id == X86_INS_MOV && is_reg(src, X86_REG_RSP) && (st->flags & INSN_IS_RSP_KNOWN)) {
		if (st->flags & INSN_IS_RBP_SAVED) {
			st->flags |= INSN_IS_RBP_FRAME;
			st->rbp_off = st->rsp_off;
		}
	} else if (id == X86_INS_XOR && x->op_count == 2 && src->type == X86_OP_REG &&
		   src->reg == x->operands[0].reg && !(st->flags & INSN_IS_RBP_SAVED)) {
		st->flags |= INSN_IS_END;
	}
}

static bool is_register(const cs_x86_op *op, x86_reg r64, x86_reg r32)
{
	return op->type == X86_OP_REG && (op->reg == r64 || op->reg == r32);
}

void insn_apply(struct insn_state *st, const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;

	switch (insn->id) {
	case X86_INS_PUSH:
		do_push(st, x);
		return;
	case X86_INS_POP:
		do_pop(st, x);
		return;
	case X86_INS_PUSHFQ:
		rsp_move(st, -8);
		return;
	case X86_INS_POPFQ:
		rsp_move(st, 8);
		return;
	case X86_INS_LEAVE:
		rsp_from_rbp(st, 8);
		rbp_popped(st);
		return;
	case X86_INS_CMP:
	case X86_INS_TEST:
		return;
	}
	if (!x->op_count || !(x->operands[0].access & CS_AC_WRITE))
		return;
	if (is_register(&x->operands[0], X86_REG_RSP, X86_REG_ESP))
		write_rsp(st, insn->id, x);
	else if (is_register(&x->operands[0], X86_REG_RBP, X86_REG_EBP))
		write_rbp(st, insn->id, x);
}

bool insn_is_jump(csh cs, const cs_insn *insn)
{
	return insn->id != X86_INS_CALL && cs_insn_group(cs, insn, CS_GRP_JUMP);
}

bool insn_is_switch(csh cs, const cs_insn *insn)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];

	if (!insn_is_jump(cs, insn) || op->type == X86_OP_IMM)
		return false;
	return op->type == X86_OP_REG || op->mem.base != X86_REG_RIP;
}

bool insn_ends_path(const cs_insn *insn)
{
	switch (insn->id) {
	case X86_INS_RET:
	case X86_INS_RETF:
	case X86_INS_RETFQ:
	case X86_INS_IRETQ:
	case X86_INS_HLT:
	case X86_INS_UD2:
	case X86_INS_INT3:
		return true;
	}
	return false;
}
