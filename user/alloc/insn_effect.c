/* SPDX-License-Identifier: MIT */
/*
 * insn_effect.c - what an instruction reads and writes, as far as a copy of it must know (tap_spot.c).
 */
#include "alloc/tap_spot_priv.h"

#include "alloc/placement_priv.h"

/* xor %eax,%eax and the like. */
static bool is_zeroing(const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	return (in->id == X86_INS_XOR || in->id == X86_INS_SUB) && x->op_count == 2 &&
	       x->operands[0].type == X86_OP_REG && x->operands[1].type == X86_OP_REG &&
	       x->operands[0].reg == x->operands[1].reg && x->operands[0].size >= 4;
}

struct insn_effect insn_effect(csh h, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	cs_regs reads, writes;
	uint8_t read_cnt, write_cnt;
	struct insn_effect e = { 0 };

	if (cs_regs_access(h, in, reads, &read_cnt, writes, &write_cnt) != CS_ERR_OK)
		return (struct insn_effect){ .is_unknown = true,
					     .reads_flags = true,
					     .writes_flags = true };
	for (int i = 0; i < read_cnt; i++) {
		int reg = insn_reg_number(reads[i]);

		e.reads_flags |= reads[i] == X86_REG_EFLAGS;
		if (reg >= 0)
			e.reads |= 1U << reg;
	}
	for (int i = 0; i < write_cnt; i++) {
		int reg = insn_reg_number(writes[i]);

		if (writes[i] == X86_REG_EFLAGS)
			e.writes_flags = true;
		else if (reg >= 0)
			e.writes |= 1U << reg;
		else
			e.writes_other = true;
	}
	if (is_zeroing(in))
		e.reads = 0;
	for (int i = 0; i < x->op_count; i++)
		e.writes_memory |=
			x->operands[i].type == X86_OP_MEM && (x->operands[i].access & CS_AC_WRITE);
	return e;
}

bool insn_overwrites(const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	switch (in->id) {
	case X86_INS_MOV:
	case X86_INS_MOVABS:
	case X86_INS_MOVZX:
	case X86_INS_MOVSX:
	case X86_INS_MOVSXD:
	case X86_INS_LEA: /* AT&T order: the destination is the last one */
		return x->op_count == 2 && x->operands[1].type == X86_OP_REG &&
		       x->operands[1].size >= 4;
	case X86_INS_MUL:
		return x->op_count == 1 && x->operands[0].size >= 4;
	default:
		return is_zeroing(in);
	}
}
