/* SPDX-License-Identifier: MIT */
/*
 * cfi.c - reads CIEs and FDEs, and runs their programs: see unwind_table_priv.h.
 *
 * A section is a list of entries, each a length, an id and a body. A CIE holds the data that many functions share
 * (alignment factors, the encoding of addresses, the rules on entry). An FDE holds the address range of a function and
 * a little program that changes the rules as pc moves on.
 *
 * CIEs are parsed when an FDE names them and are kept in a direct-mapped cache: linkers merge equal ones, so a file has
 * only a handful, and parsing one takes about as long as looking it up.
 */
#include <dwarf.h>

#include "elf/unwind_table_priv.h"

#define ADDR_BYTES 8
/*
 * A CIE is parsed and run again for every FDE that names it: without bounds a file of a few megabytes could keep
 * heaptap busy for hours. Real CIEs have up to 10, 5 and 60 bytes.
 */
#define LEB_BYTES_CAP 16
#define AUG_BYTES_CAP 16
#define CIE_INSN_BYTES_CAP 256

uint64_t cfi_u8(struct cfi_cursor *c)
{
	if (c->pos >= c->end) {
		c->is_bad = true;
		return 0;
	}
	return *c->pos++;
}

/* Little-endian, the byte order of every machine that is supported. */
static uint64_t cfi_uint(struct cfi_cursor *c, unsigned int bytes)
{
	uint64_t v = 0;
	unsigned int i;

	if ((size_t)(c->end - c->pos) < bytes) {
		c->is_bad = true;
		c->pos = c->end;
		return 0;
	}
	for (i = 0; i < bytes; i++)
		v |= (uint64_t)c->pos[i] << (8 * i);
	c->pos += bytes;
	return v;
}

static int64_t sign_extend(uint64_t v, unsigned int bits)
{
	return (int64_t)(v << (64 - bits)) >> (64 - bits);
}

/* *ret_bits: the number of bits read. Bits above 64 are dropped: padded numbers are legal. */
static uint64_t leb(struct cfi_cursor *c, unsigned int *ret_bits, bool *ret_is_negative)
{
	uint64_t v = 0;
	unsigned int shift = 0;
	uint8_t byte = 0;

	do {
		byte = (uint8_t)cfi_u8(c);
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (shift > 7 * LEB_BYTES_CAP)
			c->is_bad = true;
	} while ((byte & 0x80) && !c->is_bad);
	*ret_bits = shift;
	*ret_is_negative = byte & 0x40;
	return v;
}

static uint64_t cfi_uleb(struct cfi_cursor *c)
{
	unsigned int bits;
	bool is_negative;

	/* Nearly all numbers are one byte. */
	if (c->pos < c->end && *c->pos < 0x80)
		return *c->pos++;
	return leb(c, &bits, &is_negative);
}

int64_t cfi_sleb(struct cfi_cursor *c)
{
	unsigned int bits;
	bool is_negative;
	uint64_t v = leb(c, &bits, &is_negative);

	if (is_negative && bits < 64)
		v |= ~0ULL << bits;
	return (int64_t)v;
}

static uint64_t encoded_value(struct cfi_cursor *c, uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return cfi_uint(c, 8);
	case DW_EH_PE_uleb128:
		return cfi_uleb(c);
	case DW_EH_PE_udata2:
		return cfi_uint(c, 2);
	case DW_EH_PE_udata4:
		return cfi_uint(c, 4);
	case DW_EH_PE_sleb128:
		return (uint64_t)cfi_sleb(c);
	case DW_EH_PE_sdata2:
		return (uint64_t)sign_extend(cfi_uint(c, 2), 16);
	case DW_EH_PE_sdata4:
		return (uint64_t)sign_extend(cfi_uint(c, 4), 32);
	default:
		c->is_bad = true;
		return 0;
	}
}

uint64_t cfi_pointer(struct cfi_cursor *c, uint8_t encoding, uint64_t pos_vaddr,
		     uint64_t data_vaddr)
{
	uint64_t pad, base = 0;

	/* The loader fills in an indirect address: it is not in the file. */
	if (encoding & DW_EH_PE_indirect)
		c->is_bad = true;
	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
		break;
	case DW_EH_PE_pcrel:
		base = pos_vaddr;
		break;
	case DW_EH_PE_datarel:
		base = data_vaddr;
		break;
	case DW_EH_PE_aligned:
		pad = -pos_vaddr & (ADDR_BYTES - 1);
		if (pad > (uint64_t)(c->end - c->pos))
			pad = (uint64_t)(c->end - c->pos);
		c->pos += pad;
		return cfi_uint(c, ADDR_BYTES);
	default:
		c->is_bad = true;
	}
	return base + encoded_value(c, encoding);
}

/* The vaddr of the byte at c->pos. */
static uint64_t cfi_vaddr(const struct cfi_section *s, const struct cfi_cursor *c)
{
	return s->vaddr + (uint64_t)(c->pos - s->data);
}

/* An entry without its length: its id and where that was read, and its body. */
struct entry {
	struct cfi_cursor body;
	uint64_t id;
	size_t id_off;
	size_t end_off;
	bool is_64, is_zero;
};

static int entry_at(const struct cfi_section *s, size_t off, struct entry *ret)
{
	struct cfi_cursor c;
	uint64_t bytes;

	if (off > s->bytes)
		return -EBADMSG;
	c = (struct cfi_cursor){ .pos = s->data + off, .end = s->data + s->bytes };
	memset(ret, 0, sizeof(*ret));
	bytes = cfi_uint(&c, 4);
	if (bytes == 0xffffffff) {
		ret->is_64 = true;
		bytes = cfi_uint(&c, 8);
	}
	if (c.is_bad || bytes > (uint64_t)(c.end - c.pos))
		return -EBADMSG;
	c.end = c.pos + bytes;
	ret->end_off = (size_t)(c.end - s->data);
	ret->is_zero = !bytes;
	ret->id_off = (size_t)(c.pos - s->data);
	/* in .eh_frame, gcc and binutils write an id of 4 bytes even after a length of 8 */
	if (bytes) {
		ret->id = cfi_uint(&c, ret->is_64 && s->is_debug_frame ? 8 : 4);
		/* even an entry that is too short for an id can be skipped */
		if (c.is_bad)
			ret->is_zero = true;
	}
	ret->body = c;
	return 0;
}

static bool entry_is_cie(const struct cfi_section *s, const struct entry *e)
{
	if (!s->is_debug_frame)
		return e->id == 0;
	return e->id == (e->is_64 ? ~0ULL : 0xffffffffULL);
}

/*
 * Read the augmentation data after the string. "z" gives their size, so unknown data can be skipped. But an unknown
 * letter hides the meaning of all letters after it, 'R' perhaps.
 */
static void cie_augmentation(const struct cfi_section *s, struct cfi_cursor *c, const char *aug,
			     struct cfi_cie *cie)
{
	uint64_t bytes = cfi_uleb(c);
	struct cfi_cursor data = *c;
	uint8_t encoding;

	if (bytes > (uint64_t)(c->end - c->pos)) {
		c->is_bad = true;
		return;
	}
	data.end = data.pos + bytes;
	c->pos = data.end;
	cie->has_aug_data = true;
	for (; *aug; aug++) {
		switch (*aug) {
		case 'L':
			cfi_u8(&data);
			break;
		case 'P': /* skipped: the base of the address does not matter */
			encoding = (uint8_t)cfi_u8(&data);
			if (encoding == DW_EH_PE_omit)
				break;
			if (encoding != DW_EH_PE_aligned)
				encoding &= 0x0f;
			cfi_pointer(&data, encoding, cfi_vaddr(s, &data), 0);
			break;
		case 'R':
			cie->fde_encoding = (uint8_t)cfi_u8(&data);
			break;
		case 'S':
			cie->is_signal = true;
			break;
		case 'B': /* arm64: return addresses are signed with the B key */
		case 'G': /* arm64: memory tagging */
			break;
		default:
			c->is_bad = true;
			return;
		}
	}
	if (data.is_bad)
		c->is_bad = true;
}

static void cie_parse(const struct cfi_section *s, size_t off, struct cfi_cie *cie)
{
	struct entry e;
	struct cfi_cursor *c = &e.body;
	const char *aug;
	uint64_t version;
	size_t aug_cap;

	*cie = (struct cfi_cie){ .off = off, .is_used = true, .is_bad = true };
	if (entry_at(s, off, &e) || e.is_zero || !entry_is_cie(s, &e))
		return;
	version = cfi_u8(c);
	aug = (const char *)c->pos;
	aug_cap = (size_t)(c->end - c->pos);
	if (aug_cap > AUG_BYTES_CAP)
		aug_cap = AUG_BYTES_CAP;
	if (!memchr(aug, '\0', aug_cap))
		return;
	c->pos += strlen(aug) + 1;
	if (version == 4) {
		/* address size, segment selector size */
		if (cfi_u8(c) != ADDR_BYTES || cfi_u8(c) != 0)
			return;
	} else if (version != 1 && version != 3) {
		return;
	}
	/* gcc 2: the address of a table that nobody reads any more */
	if (aug[0] == 'e' && aug[1] == 'h') {
		cfi_uint(c, ADDR_BYTES);
		aug += 2;
	}
	cie->code_align = cfi_uleb(c);
	cie->data_align = cfi_sleb(c);
	cie->ra_reg = version == 1 ? cfi_u8(c) : cfi_uleb(c);
	if (*aug == 'z')
		cie_augmentation(s, c, aug + 1, cie);
	else if (*aug)
		return;
	cie->insn = c->pos;
	cie->insn_end = c->end;
	cie->is_bad = c->is_bad || c->end - c->pos > CIE_INSN_BYTES_CAP;
}

static const struct cfi_cie *cie_find(struct cfi_reader *r, size_t off)
{
	struct cfi_cie *cie = &r->cie[(off >> 3) % CFI_CIE_CACHE_CNT];

	if (!cie->is_used || cie->off != off)
		cie_parse(&r->section, off, cie);
	return cie;
}

static int fde_parse(struct cfi_reader *r, size_t off, struct entry *e, struct cfi_fde *ret)
{
	const struct cfi_section *s = &r->section;
	struct cfi_cursor *c = &e->body;
	const struct cfi_cie *cie;
	uint64_t cie_off, bytes;

	/* .eh_frame counts backwards from the id field */
	cie_off = s->is_debug_frame ? e->id : e->id_off - e->id;
	if (cie_off >= s->bytes)
		return -EBADMSG;
	cie = cie_find(r, (size_t)cie_off);
	if (cie->is_bad)
		return -EBADMSG;
	ret->off = off;
	ret->cie = cie;
	ret->pc = cfi_pointer(c, cie->fde_encoding, cfi_vaddr(s, c), 0);
	bytes = encoded_value(c, cie->fde_encoding);
	if (cie->has_aug_data) {
		uint64_t aug_bytes = cfi_uleb(c);

		if (aug_bytes > (uint64_t)(c->end - c->pos))
			return -EBADMSG;
		c->pos += aug_bytes;
	}
	if (c->is_bad || ret->pc + bytes < ret->pc)
		return -EBADMSG;
	ret->pc_end = ret->pc + bytes;
	ret->insn = c->pos;
	ret->insn_end = c->end;
	return 0;
}

int cfi_next(struct cfi_reader *r, struct cfi_fde *ret)
{
	const struct cfi_section *s = &r->section;
	struct entry e;
	size_t off;
	int err;

	/* Fewer than 4 bytes at the end are padding. */
	while (s->bytes - r->next_off >= 4) {
		off = r->next_off;
		if (entry_at(s, off, &e)) {
			r->next_off = s->bytes;
			return -EBADMSG;
		}
		r->next_off = e.end_off;
		if (e.is_zero) {
			if (s->ends_at_zero)
				r->next_off = s->bytes;
			/* In a section, length 0 ends the part of one input file. */
			continue;
		}
		if (entry_is_cie(s, &e))
			continue;
		err = fde_parse(r, off, &e, ret);
		return err ? err : 1;
	}
	return 0;
}

int cfi_fde_at(struct cfi_reader *r, size_t off, struct cfi_fde *ret)
{
	struct entry e;
	int err;

	err = entry_at(&r->section, off, &e);
	if (err)
		return err;
	if (e.is_zero || entry_is_cie(&r->section, &e))
		return -EBADMSG;
	return fde_parse(r, off, &e, ret);
}

/*
 * The program of an FDE.
 *
 * The state is one row of the table that DWARF describes, restricted to four rules. The CIE's program gives the row on
 * entry. When the FDE's program advances pc, the row so far is valid up to there. A damaged program stops at the
 * damage: the rows before are good.
 */

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
