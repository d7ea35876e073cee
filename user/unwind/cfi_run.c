/* SPDX-License-Identifier: MIT */
/*
 * cfi_run.c - runs the program of an FDE: see cfi.h.
 *
 * The state is one row of the table that DWARF describes, restricted to four rules. The CIE's program gives the row on
 * entry. When the FDE's program advances pc, the row so far is valid up to there. A damaged program stops at the
 * damage: the rows before are good.
 */
#include "unwind/unwind_table_priv.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

/* A running program. */
struct machine {
	const struct cfi_section *section;
	const struct cfi_fde *fde;
	const struct cfi_regs *regs;
	cfi_row_fn *fn;
	void *arg;
	uint64_t pc;
	struct cfi_row row;
	struct cfi_row initial; /* after the CIE's program: DW_CFA_restore returns to it */
	struct cfi_row remembered[CFI_REMEMBER_CAP];
	unsigned int remembered_cnt;
	bool is_done; /* pc has passed the end of the function */
};

/* NULL: a register whose rule is not kept. */
static struct cfi_rule *rule_of(const struct machine *m, struct cfi_row *row, uint64_t reg)
{
	if (reg == m->regs->fp)
		return &row->fp;
	if (reg == m->regs->ra)
		return &row->ra;
	if (reg == m->regs->sp)
		return &row->sp;
	return NULL;
}

static void rule_set(struct machine *m, uint64_t reg, uint32_t kind, int64_t off)
{
	struct cfi_rule *rule = rule_of(m, &m->row, reg);

	if (rule)
		*rule = (struct cfi_rule){ .kind = kind, .off = off };
}

static void rule_restore(struct machine *m, uint64_t reg)
{
	struct cfi_rule *rule = rule_of(m, &m->row, reg);

	if (rule)
		*rule = *rule_of(m, &m->initial, reg);
}

static void rule_set_expr(struct cfi_cursor *c, struct cfi_rule *rule, uint32_t kind)
{
	uint64_t bytes = cfi_uleb(c);

	if (bytes > (uint64_t)(c->end - c->pos)) {
		c->is_bad = true;
		return;
	}
	if (rule)
		*rule = (struct cfi_rule){ .kind = kind, .expr = c->pos, .expr_bytes = bytes };
	c->pos += bytes;
}

static void cfa_set(struct machine *m, uint64_t reg, int64_t off)
{
	m->row.cfa = (struct cfi_rule){
		.kind = CFI_REGISTER,
		.reg = reg > UINT32_MAX ? UINT32_MAX : (uint32_t)reg,
		.off = off,
	};
}

/* Offsets may be hostile: their products may wrap, which is harmless because it is defined. */
static int64_t scaled(const struct machine *m, uint64_t v)
{
	return (int64_t)(v * (uint64_t)m->fde->cie->data_align);
}

/* The current rules are valid for [m->pc, pc). */
static int advance_to(struct machine *m, uint64_t pc)
{
	int err;

	if (pc == m->pc)
		return 0;
	err = m->fn(m->arg, m->pc, &m->row);
	m->pc = pc;
	if (pc >= m->fde->pc_end)
		m->is_done = true;
	return err;
}

static int advance(struct machine *m, uint64_t delta)
{
	uint64_t left = m->fde->pc_end - m->pc;

	if (__builtin_mul_overflow(delta, m->fde->cie->code_align, &delta) || delta > left)
		delta = left;
	return advance_to(m, m->pc + delta);
}

static int set_loc(struct machine *m, struct cfi_cursor *c)
{
	uint64_t vaddr = cfi_vaddr(m->section, c);
	uint64_t pc = cfi_pointer(c, m->fde->cie->fde_encoding, vaddr, 0);

	if (c->is_bad || pc < m->pc)
		return -EBADMSG;
	return advance_to(m, pc < m->fde->pc_end ? pc : m->fde->pc_end);
}

/* Operations that move pc or keep the whole row. */
static int step_state(struct machine *m, struct cfi_cursor *c, uint64_t op)
{
	switch (op) {
	case DW_CFA_set_loc:
		return set_loc(m, c);
	case DW_CFA_advance_loc1:
		return advance(m, cfi_uint(c, 1));
	case DW_CFA_advance_loc2:
		return advance(m, cfi_uint(c, 2));
	case DW_CFA_advance_loc4:
		return advance(m, cfi_uint(c, 4));
	case DW_CFA_MIPS_advance_loc8:
		return advance(m, cfi_uint(c, 8));
	case DW_CFA_remember_state:
		if (m->remembered_cnt == CFI_REMEMBER_CAP)
			return -EBADMSG;
		m->remembered[m->remembered_cnt++] = m->row;
		return 0;
	case DW_CFA_restore_state:
		if (!m->remembered_cnt)
			return -EBADMSG;
		m->row = m->remembered[--m->remembered_cnt];
		return 0;
	case DW_CFA_nop:
		return 0;
	case DW_CFA_GNU_args_size: /* matters to landing pads only */
		cfi_uleb(c);
		return 0;
	default:
		/* The number of operands of an unknown operation is unknown too. */
		return -EBADMSG;
	}
}

/* Operations that change the rule of one register or of the CFA. */
static int step(struct machine *m, struct cfi_cursor *c, uint64_t op)
{
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = cfi_uleb(c);
		cfa_set(m, reg, (int64_t)cfi_uleb(c));
		return 0;
	case DW_CFA_def_cfa_sf:
		reg = cfi_uleb(c);
		cfa_set(m, reg, scaled(m, (uint64_t)cfi_sleb(c)));
		return 0;
	case DW_CFA_def_cfa_register:
		reg = cfi_uleb(c);
		if (m->row.cfa.kind != CFI_REGISTER)
			return -EBADMSG;
		cfa_set(m, reg, m->row.cfa.off);
		return 0;
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
		if (m->row.cfa.kind != CFI_REGISTER)
			return -EBADMSG;
		m->row.cfa.off = op == DW_CFA_def_cfa_offset ? (int64_t)cfi_uleb(c) :
							       scaled(m, (uint64_t)cfi_sleb(c));
		return 0;
	case DW_CFA_def_cfa_expression:
		rule_set_expr(c, &m->row.cfa, CFI_EXPR);
		return 0;
	case DW_CFA_undefined:
		rule_set(m, cfi_uleb(c), CFI_UNDEFINED, 0);
		return 0;
	case DW_CFA_same_value:
		rule_set(m, cfi_uleb(c), CFI_SAME, 0);
		return 0;
	case DW_CFA_register:
		reg = cfi_uleb(c);
		rule_set(m, reg, CFI_REGISTER, (int64_t)cfi_uleb(c));
		return 0;
	case DW_CFA_offset_extended:
		reg = cfi_uleb(c);
		rule_set(m, reg, CFI_OFFSET, scaled(m, cfi_uleb(c)));
		return 0;
	case DW_CFA_offset_extended_sf:
		reg = cfi_uleb(c);
		rule_set(m, reg, CFI_OFFSET, scaled(m, (uint64_t)cfi_sleb(c)));
		return 0;
	case DW_CFA_GNU_negative_offset_extended:
		reg = cfi_uleb(c);
		rule_set(m, reg, CFI_OFFSET, scaled(m, -cfi_uleb(c)));
		return 0;
	case DW_CFA_val_offset:
		reg = cfi_uleb(c);
		rule_set(m, reg, CFI_VAL_OFFSET, scaled(m, cfi_uleb(c)));
		return 0;
	case DW_CFA_val_offset_sf:
		reg = cfi_uleb(c);
		rule_set(m, reg, CFI_VAL_OFFSET, scaled(m, (uint64_t)cfi_sleb(c)));
		return 0;
	case DW_CFA_restore_extended:
		rule_restore(m, cfi_uleb(c));
		return 0;
	case DW_CFA_expression:
		reg = cfi_uleb(c);
		rule_set_expr(c, rule_of(m, &m->row, reg), CFI_EXPR);
		return 0;
	case DW_CFA_val_expression:
		reg = cfi_uleb(c);
		rule_set_expr(c, rule_of(m, &m->row, reg), CFI_VAL_EXPR);
		return 0;
	default:
		return step_state(m, c, op);
	}
}

static int run(struct machine *m, const uint8_t *insn, const uint8_t *insn_end)
{
	struct cfi_cursor c = { .pos = insn, .end = insn_end };
	uint64_t op;
	int err = 0;

	while (!err && c.pos < c.end && !m->is_done) {
		op = cfi_u8(&c);
		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			err = advance(m, op & 0x3f);
			break;
		case DW_CFA_offset:
			rule_set(m, op & 0x3f, CFI_OFFSET, scaled(m, cfi_uleb(&c)));
			break;
		case DW_CFA_restore:
			rule_restore(m, op & 0x3f);
			break;
		default:
			err = step(m, &c, op);
		}
		if (c.is_bad)
			err = -EBADMSG;
	}
	return err;
}

int cfi_run(const struct cfi_section *section, const struct cfi_fde *fde,
	    const struct cfi_regs *regs, cfi_row_fn *fn, void *arg, uint64_t *ret_pc)
{
	struct machine m;
	int err;

	m.section = section;
	m.fde = fde;
	m.regs = regs;
	m.fn = fn;
	m.arg = arg;
	m.pc = fde->pc;
	m.remembered_cnt = 0;
	m.is_done = false;
	memset(&m.row, 0, sizeof(m.row));
	memset(&m.initial, 0, sizeof(m.initial));

	err = run(&m, fde->cie->insn, fde->cie->insn_end);
	m.initial = m.row;
	if (!err)
		err = run(&m, fde->insn, fde->insn_end);
	if (!err && !m.is_done)
		err = fn(arg, m.pc, &m.row);
	*ret_pc = m.pc;
	return err;
}
