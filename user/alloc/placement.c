/* SPDX-License-Identifier: MIT */
/*
 * placement.c - where in a function to put a uprobe, and other facts about its code.
 *
 * A uprobe replaces one instruction by a trap. The cost of a hit then depends on how the kernel executes the
 * instruction: it emulates a few kinds (one trap), and runs all others out of line under single-step (a second trap,
 * several times the cost on bare metal and thirty times in a virtual machine). On x86-64 the emulated ones are
 * (arch/x86/kernel/uprobes.c, branch_setup_xol_ops and push_setup_xol_ops):
 *   - push of a register, 50+r or 41 50+r; no other push
 *   - jmp rel8/rel32, call rel32, jcc rel8/rel32, without an operand-size prefix
 *   - nop, 90; longer ones (66 90, 0f 1f ...) from 6.16. Older kernels single-step them, and
 *     some refuse a probe on 66 90 altogether
 * endbr64, test, mov, sub, cmp are not among them, and most functions begin with one of these.
 *
 * So the probe may be placed a few instructions into the function, provided that this is as good as the entry:
 *   - every call passes there exactly once: nothing but straight-line code before it, and no
 *     jump of the function goes to an address in (entry, probe]
 *   - the arguments can still be read. Registers are followed through 64-bit moves, so an
 *     argument that was moved to another argument register is read there (struct placement's
 *     arg_at): mimalloc's malloc begins by moving its size from rdi to rsi
 *   - rsp is that of the entry when a return probe follows (it patches the word at rsp)
 * The only branch that may be passed is a NULL check of argument 0, if the caller allows it: then a probe behind it
 * also saves the hits of free(NULL).
 *
 * If nothing is found, the probe is at +0, single-stepped, and the reason is noted. A nop of five bytes is never
 * chosen: kernels 6.18 to 7.1 rewrite it into a call, which overwrites the red zone below the stack pointer and crashes
 * a forked child.
 *
 * Not seen: jumps into the first bytes from outside the symbol (a split-off cold part) or through a table. Compilers do
 * not produce either for a function's first 64 bytes.
 */
#include "alloc/placement.h"

#include <elf.h>

#include "alloc/placement_priv.h"
#include "elf/elf_file.h"

#define SEARCH_INSNS 16
#define SEARCH_BYTES 64
#define UNKNOWN_FN_BYTES 4096
#define FN_BYTES_CAP (256 * 1024) /* of a longer function only this much is looked at */
#define ARG_CNT 6
#define NO_ARG 0xff
#define NEVER_NOP_BYTES 5
/* Decoding an instruction takes 100 ns. */
#define STEPS_PER_CODE_BYTE 12

static uint64_t relative(const cs_insn *in, size_t disp_bytes)
{
	int32_t disp = (int8_t)in->bytes[in->size - 1];

	if (disp_bytes == 4)
		memcpy(&disp, in->bytes + in->size - 4, 4);
	return in->address + in->size + (uint64_t)(int64_t)disp;
}

static enum kind indirect_kind(const cs_insn *in, const uint8_t *p, uint64_t *ret_target)
{
	unsigned int reg = p[1] >> 3 & 7;

	if (reg < 2 || reg > 5)
		return KIND_OTHER;
	if (p[1] != 0x25 && p[1] != 0x15)
		return reg < 4 ? KIND_INDIRECT : KIND_INDIRECT_JMP;
	*ret_target = relative(in, 4);
	return p[1] == 0x25 ? KIND_SLOT_JMP : KIND_SLOT_CALL;
}

enum kind insn_classify(const cs_insn *in, uint64_t *ret_target)
{
	const uint8_t *p = in->bytes, *end = in->bytes + in->size;
	bool is_16bit = false;

	*ret_target = 0;
	if (!in->id)
		return KIND_OTHER; /* data between code */
	/* Prefixes that make no difference here: bnd, notrack and branch hints. */
	while (p < end && (*p == 0xf2 || *p == 0xf3 || *p == 0x2e || *p == 0x3e || *p == 0x66))
		is_16bit |= *p++ == 0x66;
	if (p == end)
		return KIND_OTHER;
	if ((*p & 0xf8) == 0x50 && in->size == 1)
		return KIND_PUSH;
	if (*p == 0x41 && in->size == 2 && (p[1] & 0xf8) == 0x50)
		return KIND_PUSH;
	if (*p == 0x90 && in->size == 1)
		return KIND_NOP;
	if ((*p == 0x90 && in->bytes[0] == 0x66) || (p + 2 <= end && p[0] == 0x0f && p[1] == 0x1f))
		return in->size == NEVER_NOP_BYTES ? KIND_OTHER : KIND_LONG_NOP;
	if (*p == 0xc3 || *p == 0xc2)
		return KIND_RET;
	if (p + 2 <= end && *p == 0xff)
		return indirect_kind(in, p, ret_target);
	if (p + 3 <= end && (*p & 0xf0) == 0x40 && p[1] == 0xff)
		return indirect_kind(in, p + 1, ret_target);
	if (is_16bit)
		return KIND_OTHER;
	if (*p == 0xeb || (*p & 0xf0) == 0x70) {
		*ret_target = relative(in, 1);
		return *p == 0xeb ? KIND_JMP : KIND_JCC;
	}
	if (p + 5 <= end && (*p == 0xe9 || *p == 0xe8)) {
		*ret_target = relative(in, 4);
		return *p == 0xe9 ? KIND_JMP : KIND_CALL;
	}
	if (p + 6 <= end && p[0] == 0x0f && (p[1] & 0xf0) == 0x80) {
		*ret_target = relative(in, 4);
		return KIND_JCC;
	}
	return KIND_OTHER;
}

static bool is_emulated(enum kind k, bool multibyte_nop_ok)
{
	return k == KIND_PUSH || k == KIND_NOP || k == KIND_JMP || k == KIND_CALL ||
	       k == KIND_JCC || (k == KIND_LONG_NOP && multibyte_nop_ok);
}

int code_open(const struct elf_file *ef, uint64_t vaddr, uint64_t bytes, struct code *ret)
{
	size_t follow;

	if (elf_file_ehdr(ef)->e_machine != EM_X86_64 || !elf_file_is_64(ef))
		return -ENOTSUP;
	ret->bytes = elf_file_at(ef, vaddr, FN_BYTES_CAP, &follow);
	if (!ret->bytes)
		return -ENOENT;
	ret->vaddr = vaddr;
	if (!bytes)
		bytes = UNKNOWN_FN_BYTES;
	if (bytes > FN_BYTES_CAP)
		bytes = FN_BYTES_CAP;
	ret->cnt = bytes < follow ? bytes : follow;
	/* Many functions may claim the same code. */
	return elf_file_step(ef, ret->cnt * STEPS_PER_CODE_BYTE) ? 0 : -EFBIG;
}

int decoder_open(bool detail, csh *ret, cs_insn **ret_insn)
{
	csh h;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &h) != CS_ERR_OK)
		return -ENOMEM;
	cs_option(h, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	cs_option(h, CS_OPT_DETAIL, detail ? CS_OPT_ON : CS_OPT_OFF);
	/* The walk over a whole function must skip data between code; the search must not. */
	cs_option(h, CS_OPT_SKIPDATA, detail ? CS_OPT_OFF : CS_OPT_ON);
	*ret_insn = cs_malloc(h);
	if (!*ret_insn) {
		cs_close(&h);
		return -ENOMEM;
	}
	*ret = h;
	return 0;
}

void decoder_close(csh h, cs_insn *in)
{
	cs_free(in, 1);
	cs_close(&h);
}

int code_lowest_jump_target(const struct code *c, uint64_t *ret)
{
	const uint8_t *p = c->bytes;
	uint64_t vaddr = c->vaddr, target;
	size_t left = c->cnt;
	cs_insn *in;
	csh h;
	int err;

	err = decoder_open(false, &h, &in);
	if (err)
		return err;
	*ret = UINT64_MAX;
	while (cs_disasm_iter(h, &p, &left, &vaddr, in)) {
		enum kind k = insn_classify(in, &target);

		if ((k == KIND_JMP || k == KIND_JCC) && target > c->vaddr && target < *ret)
			*ret = target;
	}
	decoder_close(h, in);
	return 0;
}

int insn_reg_number(unsigned int reg)
{
	static const uint16_t names[16][5] = {
		{ X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL, X86_REG_AH },
		{ X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH },
		{ X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH },
		{ X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL, X86_REG_BH },
		{ X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL },
		{ X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL },
		{ X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL },
		{ X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL },
		{ X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B },
		{ X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B },
		{ X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B },
		{ X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B },
		{ X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B },
		{ X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B },
		{ X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B },
		{ X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B },
	};
	int i, j;

	for (i = 0; reg && i < 16; i++)
		for (j = 0; j < 5; j++)
			if (names[i][j] == reg)
				return i;
	return -1;
}

static const uint8_t arg_reg[ARG_CNT] = { 7, 6, 2, 1, 8, 9 }; /* rdi rsi rdx rcx r8 r9 */

/* The known state before an instruction. */
struct state {
	uint8_t holds[16]; /* argument that the register holds, or NO_ARG */
	bool is_rsp_moved;
	uint8_t tests; /* argument whose NULL-ness is in the flags, or NO_ARG */
	/* The instruction that overwrote argument i, or (the last one) moved the entry's rsp. */
	struct loss {
		bool is_set;
		unsigned int off;
		char insn[PLACEMENT_TEXT_BYTES];
	} loss[ARG_CNT + 1];
};
#define LOSS_OF_RSP ARG_CNT

/* buf has room for PLACEMENT_TEXT_BYTES. */
static void print_insn(const cs_insn *in, char *buf)
{
	snprintf(buf, PLACEMENT_TEXT_BYTES, "%.15s%s%.40s", in->mnemonic, in->op_str[0] ? " " : "",
		 in->op_str);
}

/* 1 + the number of the argument register that holds argument arg, preferably its own; 0: none. */
static int holder(const struct state *st, int arg)
{
	int j;

	if (st->holds[arg_reg[arg]] == arg)
		return 1 + arg;
	for (j = 0; j < ARG_CNT; j++)
		if (st->holds[arg_reg[j]] == arg)
			return 1 + j;
	return 0;
}

static void note_loss(const cs_insn *in, uint64_t fn_vaddr, struct loss *loss)
{
	if (loss->is_set)
		return;
	loss->is_set = true;
	loss->off = (unsigned int)(in->address - fn_vaddr);
	print_insn(in, loss->insn);
}

/* Apply the instruction to the state. */
static void step(csh h, const cs_insn *in, uint64_t fn_vaddr, struct state *st)
{
	const cs_x86 *x = &in->detail->x86;
	uint8_t moved = NO_ARG, tests = NO_ARG, read_cnt, write_cnt;
	cs_regs reads, writes;
	int a = -1, b = -1, i;

	if (x->op_count == 2 && x->operands[0].type == X86_OP_REG &&
	    x->operands[1].type == X86_OP_REG && x->operands[0].size == 8) {
		a = insn_reg_number(x->operands[0].reg); /* AT&T order: source, destination */
		b = insn_reg_number(x->operands[1].reg);
	}
	if (in->id == X86_INS_MOV && a >= 0)
		moved = st->holds[a];
	if (in->id == X86_INS_TEST && a >= 0 && a == b)
		tests = st->holds[a];
	if (cs_regs_access(h, in, reads, &read_cnt, writes, &write_cnt) != CS_ERR_OK) {
		memset(st->holds, NO_ARG, sizeof(st->holds));
		st->is_rsp_moved = true;
		write_cnt = 0;
	}
	for (i = 0; i < write_cnt; i++) {
		int reg = insn_reg_number(writes[i]);

		if (writes[i] == X86_REG_EFLAGS)
			st->tests = NO_ARG;
		if (reg < 0)
			continue;
		st->holds[reg] = NO_ARG;
		st->is_rsp_moved |= reg == RSP;
	}
	if (moved != NO_ARG && b >= 0)
		st->holds[b] = moved;
	if (tests != NO_ARG)
		st->tests = tests;
	for (i = 0; i < ARG_CNT; i++)
		if (!holder(st, i))
			note_loss(in, fn_vaddr, &st->loss[i]);
	if (st->is_rsp_moved)
		note_loss(in, fn_vaddr, &st->loss[LOSS_OF_RSP]);
}

/* Locate the needed arguments. False: one is lost; *ret_lost is its number. */
static bool locate_args(const struct state *st, uint32_t mask, uint8_t *arg_at, int *ret_lost)
{
	int i;

	for (i = 0; i < ARG_CNT; i++) {
		int at = mask & 1U << i ? holder(st, i) : 1 + i;

		if (!at) {
			*ret_lost = i;
			return false;
		}
		arg_at[i] = (uint8_t)(at - 1);
	}
	return true;
}

/* May the probe be placed on this instruction? If so fill ret, else ret->why. */
static bool accept(const struct state *st, const struct placement_request *req,
		   uint64_t jump_target, const cs_insn *in, struct placement *ret)
{
	uint8_t arg_at[ARG_CNT];
	int lost;

	if (jump_target <= in->address) {
		snprintf(ret->why, sizeof(ret->why), "a jump goes back to +%llu",
			 (unsigned long long)(jump_target - req->fn_vaddr));
		return false;
	}
	if (!locate_args(st, req->arg_mask, arg_at, &lost)) {
		snprintf(ret->why, sizeof(ret->why), "argument %d lost at +%u %.30s", lost,
			 st->loss[lost].off, st->loss[lost].insn);
		return false;
	}
	if (req->needs_entry_sp && st->is_rsp_moved) {
		snprintf(ret->why, sizeof(ret->why), "stack moved at +%u %.30s",
			 st->loss[LOSS_OF_RSP].off, st->loss[LOSS_OF_RSP].insn);
		return false;
	}
	memcpy(ret->arg_at, arg_at, sizeof(arg_at));
	ret->vaddr = in->address;
	ret->is_emulated = true;
	ret->why[0] = '\0';
	print_insn(in, ret->insn);
	return true;
}

static void search(csh h, cs_insn *in, const struct code *c, const struct placement_request *req,
		   uint64_t jump_target, struct placement *ret)
{
	size_t left = c->cnt < SEARCH_BYTES + 16 ? c->cnt : SEARCH_BYTES + 16;
	uint64_t vaddr = c->vaddr, target;
	const uint8_t *p = c->bytes;
	struct state st = { .tests = NO_ARG };
	int insn_cnt = req->entry_only ? 1 : SEARCH_INSNS;
	bool behind_null = false;
	int i;

	memset(st.holds, NO_ARG, sizeof(st.holds));
	for (i = 0; i < ARG_CNT; i++)
		st.holds[arg_reg[i]] = (uint8_t)i;
	snprintf(ret->why, sizeof(ret->why), "no instruction that the kernel emulates");
	for (i = 0; i < insn_cnt && cs_disasm_iter(h, &p, &left, &vaddr, in); i++) {
		enum kind k = insn_classify(in, &target);
		bool is_null_check = k == KIND_JCC && in->id == X86_INS_JE && st.tests == 0;

		if (in->address - c->vaddr >= SEARCH_BYTES)
			return;
		if (!i)
			print_insn(in, ret->insn);
		if (is_emulated(k, req->multibyte_nop_ok) && (!ret->is_emulated || behind_null)) {
			struct placement found = *ret;

			if (!accept(&st, req, jump_target, in, &found)) {
				if (!ret->is_emulated)
					memcpy(ret->why, found.why, sizeof(ret->why));
				return;
			}
			*ret = found;
			ret->skips_null = behind_null;
			if (behind_null)
				return;
		}
		if (ret->is_emulated && !req->null_check_ok)
			return;
		if (is_null_check && req->null_check_ok)
			behind_null = true;
		else if (k >= KIND_JMP)
			return; /* after it not every call passes, or registers have changed */
		step(h, in, c->vaddr, &st);
	}
}

int placement_find(const struct elf_file *ef, const struct placement_request *req,
		   struct placement *ret)
{
	uint64_t jump_target;
	struct code c;
	cs_insn *in;
	csh h;
	int err, i;

	err = code_open(ef, req->fn_vaddr, req->fn_bytes, &c);
	if (!err)
		err = code_lowest_jump_target(&c, &jump_target);
	if (!err)
		err = decoder_open(true, &h, &in);
	if (err)
		return err;
	memset(ret, 0, sizeof(*ret));
	ret->vaddr = req->fn_vaddr;
	for (i = 0; i < ARG_CNT; i++)
		ret->arg_at[i] = (uint8_t)i;
	search(h, in, &c, req, jump_target, ret);
	decoder_close(h, in);
	return 0;
}

/* Is it xor eax,eax or mov $0,%eax? */
static bool is_zero_result(const cs_insn *in)
{
	static const uint8_t mov[] = { 0xb8, 0, 0, 0, 0 };

	return (in->size == 2 && (in->bytes[0] == 0x31 || in->bytes[0] == 0x33) &&
		in->bytes[1] == 0xc0) ||
	       (in->size == 5 && !memcmp(in->bytes, mov, sizeof(mov)));
}

/* Does the instruction only restore the stack, between zeroing eax and ret: add/lea rsp, pop of another register? */
static bool is_epilogue(const cs_insn *in)
{
	const uint8_t *b = in->bytes;

	if (in->size == 1)
		return b[0] >= 0x59 && b[0] <= 0x5f;
	if (in->size == 2)
		return b[0] == 0x41 && (b[1] & 0xf8) == 0x58;
	return b[0] == 0x48 && (b[1] == 0x83 || b[1] == 0x81) && b[2] == 0xc4;
}

static void add_branch(struct code_shape *sh, uint64_t target, bool is_jump, bool is_slot)
{
	if (sh->out_cnt == CODE_BRANCHES_CAP)
		sh->is_cut = true;
	else
		sh->out[sh->out_cnt++] = (struct branch_out){ target, is_jump, is_slot };
}

int placement_shape(const struct elf_file *ef, uint64_t fn_vaddr, uint64_t fn_bytes,
		    struct code_shape *ret)
{
	bool is_zero = false;
	const uint8_t *p;
	uint64_t vaddr, target;
	struct code c;
	cs_insn *in;
	size_t left;
	csh h;
	int err;

	err = code_open(ef, fn_vaddr, fn_bytes, &c);
	if (!err)
		err = decoder_open(false, &h, &in);
	if (err)
		return err;
	memset(ret, 0, sizeof(*ret));
	p = c.bytes;
	left = c.cnt;
	vaddr = c.vaddr;
	while (cs_disasm_iter(h, &p, &left, &vaddr, in)) {
		enum kind k = insn_classify(in, &target);
		bool is_out = target < c.vaddr || target >= c.vaddr + c.cnt;

		ret->insn_cnt++;
		ret->has_indirect |= k == KIND_INDIRECT || k == KIND_INDIRECT_JMP;
		ret->has_indirect_jump |= k == KIND_INDIRECT_JMP;
		if (k == KIND_RET) {
			ret->ret_cnt++;
			ret->ret_zero_cnt += is_zero;
		}
		if (k == KIND_SLOT_JMP || k == KIND_SLOT_CALL)
			add_branch(ret, target, k == KIND_SLOT_JMP, true);
		else if ((k == KIND_JMP || k == KIND_JCC || k == KIND_CALL) && is_out)
			add_branch(ret, target, k != KIND_CALL, false);
		is_zero = is_zero_result(in) || (is_zero && is_epilogue(in));
	}
	decoder_close(h, in);
	return 0;
}
