/* SPDX-License-Identifier: MIT */
/*
 * unwind_rule.c - see unwind_table_priv.h.
 *
 * A row can say "CFA = rsp or rbp + off", which covers nearly everything. Expressions are not evaluated in BPF; the few
 * that toolchains write on purpose are recognised by their shape:
 *
 * - PLT stubs of binutils and gold: one FDE for the whole .plt, whose CFA is
 *   rsp + 8 + ((pc & 15) >= N) << 3; in a stub the relocation index has been pushed from N on.
 * - Functions that realign their stack (gcc's DRAP): the CFA is kept in the frame, at rbp + off.
 * - Hand-written code that keeps the old stack pointer on the stack: *(rsp + off).
 * - The return trampoline of signal handlers: everything is in the ucontext at rsp.
 *
 * If a row cannot say where the caller's rbp is, it says HT_RBP_UNDEFINED: the walk goes on as long as rbp is not
 * needed. If it cannot say where the CFA or the return address is, it says HT_CFA_UNSUPPORTED.
 */
#include "elf/unwind_table_priv.h"

#include <dwarf.h>
#include <elf.h>

#define X86_64_RBP 6
#define X86_64_RSP 7
#define X86_64_RIP 16

/* Offsets of the saved registers in the kernel's struct ucontext, x86-64. */
#define X86_64_UC_RBP 120
#define X86_64_UC_RSP 160
#define X86_64_UC_RIP 168

/* A row has 16 bits for an offset, in units of 8 bytes. */
static bool off_fits(int64_t off)
{
	return off % 8 == 0 && off / 8 >= INT16_MIN && off / 8 <= INT16_MAX;
}

/* Another kind of row has 24 bits, for frames of up to 128 MiB. */
static bool off_fits_wide(int64_t off)
{
	return off % 8 == 0 && off >= 0 && off / 8 < 1 << 24;
}

/* Is expr DW_OP_breg<reg> off, with DW_OP_deref after it if is_deref? */
static bool expr_is_reg(const struct cfi_rule *rule, uint8_t reg, bool is_deref, int64_t *ret_off)
{
	struct cfi_cursor c = { .pos = rule->expr, .end = rule->expr + rule->expr_bytes };

	if (cfi_u8(&c) != (uint64_t)DW_OP_breg0 + reg)
		return false;
	*ret_off = cfi_sleb(&c);
	if (is_deref && cfi_u8(&c) != DW_OP_deref)
		return false;
	return !c.is_bad && c.pos == c.end;
}

static bool expr_is_plt(const struct cfi_rule *rule, int16_t *ret_pushed_at)
{
	static const uint8_t head[] = { DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and };
	static const uint8_t tail[] = { DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };
	struct cfi_cursor c = { .pos = rule->expr, .end = rule->expr + rule->expr_bytes };
	uint64_t lit;
	size_t i;

	for (i = 0; i < sizeof(head); i++) {
		if (cfi_u8(&c) != head[i])
			return false;
	}
	lit = cfi_u8(&c);
	for (i = 0; i < sizeof(tail); i++) {
		if (cfi_u8(&c) != tail[i])
			return false;
	}
	if (c.is_bad || c.pos != c.end || lit < DW_OP_lit0 || lit > DW_OP_lit15)
		return false;
	*ret_pushed_at = (int16_t)(lit - DW_OP_lit0);
	return true;
}

static bool x86_64_is_sigreturn(const struct cfi_row *row)
{
	int64_t rsp_at, rip_at, rbp_at;

	return row->cfa.kind == CFI_EXPR && row->ra.kind == CFI_EXPR && row->fp.kind == CFI_EXPR &&
	       expr_is_reg(&row->cfa, X86_64_RSP, true, &rsp_at) && rsp_at == X86_64_UC_RSP &&
	       expr_is_reg(&row->ra, X86_64_RSP, false, &rip_at) && rip_at == X86_64_UC_RIP &&
	       expr_is_reg(&row->fp, X86_64_RSP, false, &rbp_at) && rbp_at == X86_64_UC_RBP;
}

static bool x86_64_cfa(const struct cfi_rule *cfa, struct ht_row *ret)
{
	int64_t off;

	if (cfa->kind == CFI_REGISTER) {
		off = cfa->off;
		if (cfa->reg == X86_64_RSP)
			ret->cfa = HT_CFA_RSP;
		else if (cfa->reg == X86_64_RBP)
			ret->cfa = HT_CFA_RBP;
		else
			return false;
	} else if (cfa->kind != CFI_EXPR) {
		return false;
	} else if (expr_is_reg(cfa, X86_64_RBP, true, &off)) {
		ret->cfa = HT_CFA_DEREF_RBP;
	} else if (expr_is_reg(cfa, X86_64_RSP, true, &off)) {
		ret->cfa = HT_CFA_DEREF_RSP;
	} else if (expr_is_plt(cfa, &ret->cfa_off)) {
		ret->cfa = HT_CFA_PLT;
		return true;
	} else {
		return false;
	}
	if (ret->cfa == HT_CFA_RSP && !off_fits(off) && off_fits_wide(off)) {
		ret->cfa = HT_CFA_RSP_WIDE;
		ret->cfa_off = (int16_t)(off / 8 & 0xffff);
		ret->rbp_off = (int16_t)(off / 8 >> 16 << 8);
		return true;
	}
	if (!off_fits(off))
		return false;
	ret->cfa_off = (int16_t)(off / 8);
	return true;
}

static void x86_64_rbp(const struct cfi_rule *fp, struct ht_row *ret)
{
	int64_t off = fp->off;

	if (fp->kind == CFI_SAME) {
		ret->rbp = HT_RBP_SAME;
		return;
	}
	if (fp->kind == CFI_OFFSET && off_fits(off)) {
		ret->rbp = HT_RBP_AT_CFA;
	} else if (fp->kind == CFI_EXPR && expr_is_reg(fp, X86_64_RBP, false, &off) &&
		   off_fits(off)) {
		ret->rbp = HT_RBP_AT_RBP;
	} else {
		ret->rbp = HT_RBP_UNDEFINED;
		return;
	}
	if (ret->cfa != HT_CFA_RSP_WIDE)
		ret->rbp_off = (int16_t)(off / 8);
	else if (off / 8 >= INT8_MIN && off / 8 <= INT8_MAX)
		ret->rbp_off |= (int16_t)(off / 8 & 0xff);
	else
		ret->rbp = HT_RBP_UNDEFINED;
}

static struct ht_row x86_64_row(const struct cfi_row *row, bool is_signal)
{
	static const struct ht_row unsupported = { .cfa = HT_CFA_UNSUPPORTED };
	struct ht_row ret = { 0 };

	if (row->ra.kind == CFI_UNDEFINED)
		return (struct ht_row){ .cfa = HT_CFA_END };
	if (is_signal && x86_64_is_sigreturn(row))
		return (struct ht_row){ .cfa = HT_CFA_SIGNAL };
	/* The caller's rsp is the CFA unless a rule says otherwise. */
	if (row->sp.kind != CFI_SAME && !(row->sp.kind == CFI_VAL_OFFSET && !row->sp.off))
		return unsupported;
	if (row->ra.kind != CFI_OFFSET || row->ra.off != -8)
		return unsupported;
	if (!x86_64_cfa(&row->cfa, &ret))
		return unsupported;
	x86_64_rbp(&row->fp, &ret);
	return ret;
}

static const struct unwind_arch archs[] = {
	{
		.machine = EM_X86_64,
		.regs = { .sp = X86_64_RSP, .fp = X86_64_RBP, .ra = X86_64_RIP },
		.row = x86_64_row,
	},
};

const struct unwind_arch *unwind_arch_find(int machine)
{
	size_t i;

	for (i = 0; i < ARRAY_CNT(archs); i++) {
		if (archs[i].machine == machine)
			return &archs[i];
	}
	return NULL;
}
