/* SPDX-License-Identifier: MIT */
/*
 * test_placement.c - where a probe goes, on hand-assembled functions.
 */
#include "unit.h"

#include <elf.h>

#include "elf/unwind_table.h"
#include "alloc/placement.h"
#include "open_elf.h"

#define CODE(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

/* Instructions, as bytes. */
#define ENDBR64 0xf3, 0x0f, 0x1e, 0xfa
#define PUSH_RBX 0x53
#define PUSH_R12 0x41, 0x54
#define PUSH_IMM 0x6a, 0x01
#define PUSH_MEM 0xff, 0x30 /* push (%rax) */
#define RET 0xc3
#define NOP 0x90
#define NOP2 0x66, 0x90
#define NOP3 0x0f, 0x1f, 0x00
#define NOP5 0x0f, 0x1f, 0x44, 0x00, 0x00
#define NOP5_66 0x66, 0x0f, 0x1f, 0x40, 0x00
#define XCHG_R8 0x41, 0x90
#define PAUSE 0xf3, 0x90
#define MOV_RDI_RBX 0x48, 0x89, 0xfb /* mov %rdi,%rbx */
#define MOV_RDI_RSI 0x48, 0x89, 0xfe
#define MOV_RSI_RDX 0x48, 0x89, 0xf2
#define MOV_RDI_RCX 0x48, 0x89, 0xf9
#define MOV_EDI_ESI 0x89, 0xfe
#define XOR_EDI 0x31, 0xff
#define MOV_DIL 0x40, 0xb7, 0x01 /* mov $1,%dil */
#define MUL_RSI 0x48, 0xf7, 0xe6 /* rdx:rax */
#define LEA_RDI_RSI 0x48, 0x8d, 0x77, 0x01 /* lea 1(%rdi),%rsi */
#define SUB_RSP 0x48, 0x83, 0xec, 0x18
#define TEST_RDI 0x48, 0x85, 0xff
#define TEST_RCX 0x48, 0x85, 0xc9
#define TEST_EDI 0x85, 0xff
#define TEST_RSI 0x48, 0x85, 0xf6
#define CMP_RDI 0x48, 0x81, 0xff, 0x00, 0x10, 0x00, 0x00
#define JE(d) 0x74, (d)
#define JNE(d) 0x75, (d)
#define JA32(d) 0x0f, 0x87, (d), 0, 0, 0
#define JMP8(d) 0xeb, (uint8_t)(d)
#define JMP32(d) 0xe9, (d), 0, 0, 0
#define CALL(d) 0xe8, (d), 0, 0, 0
#define BND_JMP(d) 0xf2, 0xe9, (d), 0, 0, 0
#define JMP_RAX 0xff, 0xe0
#define MOV_RAX_MEM 0x48, 0x8b, 0x06 /* mov (%rsi),%rax */
#define X4(...) __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__

#define A0 1U
#define A1 2U
#define A2 4U
#define SP 0x100U /* needs_entry_sp */
#define NULL_OK 0x200U
#define NOPS_OK 0x400U
#define ENTRY 0x800U

/* clang-format off */
static const struct {
	const char *name;
	const uint8_t *code;
	size_t bytes;
	uint32_t want; /* A0.. | SP | NULL_OK | NOPS_OK */
	uint64_t off;
	bool is_emulated, skips_null;
	const char *insn, *why; /* substrings */
	uint8_t arg0_at, arg1_at;
} cases[] = {
	{"push first", CODE(PUSH_RBX, RET), A0 | SP, 0, true, false, "push", "", 0, 1},
	{"push of r12", CODE(PUSH_R12, RET), A0 | SP, 0, true, false, "r12", "", 0, 1},
	{"endbr64, then push", CODE(ENDBR64, PUSH_RBX, RET), A0 | SP, 4, true, false, "push", "", 0, 1},
	{"mov away first", CODE(MOV_RDI_RBX, PUSH_RBX, RET), A0 | SP, 3, true, false, "push", "", 0, 1},
	{"nop", CODE(ENDBR64, NOP, RET), A0 | SP, 4, true, false, "nop", "", 0, 1},
	{"push of an immediate is not emulated", CODE(PUSH_IMM, PUSH_RBX, RET), A0, 2, true, false, "push", "", 0, 1},
	{"push of memory is not emulated", CODE(PUSH_MEM, PUSH_RBX, RET), A0, 2, true, false, "push", "", 0, 1},
	{"and it moves the stack", CODE(PUSH_IMM, PUSH_RBX, RET), A0 | SP, 0, false, false, "push", "stack moved at +0", 0, 1},
	{"xchg with r8 is no nop", CODE(XCHG_R8, PUSH_RBX, RET), A0, 2, true, false, "push", "", 0, 1},
	{"pause is left alone", CODE(PAUSE, PUSH_RBX, RET), A0, 2, true, false, "push", "", 0, 1},
	{"long nops: old kernel", CODE(NOP3, PUSH_RBX, RET), A0, 3, true, false, "push", "", 0, 1},
	{"long nops: new kernel", CODE(NOP3, PUSH_RBX, RET), A0 | NOPS_OK, 0, true, false, "nop", "", 0, 1},
	{"66 nop: old kernel", CODE(NOP2, PUSH_RBX, RET), A0, 2, true, false, "push", "", 0, 1},
	{"66 nop: new kernel", CODE(NOP2, PUSH_RBX, RET), A0 | NOPS_OK, 0, true, false, "", "", 0, 1},
	{"nop5 never", CODE(NOP5, PUSH_RBX, RET), A0 | NOPS_OK, 5, true, false, "push", "", 0, 1},
	{"nop5 never, other form", CODE(NOP5_66, PUSH_RBX, RET), A0 | NOPS_OK, 5, true, false, "push", "", 0, 1},
	{"jcc after a compare", CODE(CMP_RDI, JA32(0x40), RET), A0 | SP, 7, true, false, "ja", "", 0, 1},
	{"jmp to a common tail", CODE(XOR_EDI, JMP32(0x40)), A1 | SP, 2, true, false, "jmp", "", 0, 1},
	{"bnd jmp", CODE(BND_JMP(0x40)), A0 | SP, 0, true, false, "jmp", "", 0, 1},
	{"call", CODE(CALL(0x40), RET), A0 | SP, 0, true, false, "call", "", 0, 1},
	{"stack moved first", CODE(SUB_RSP, CALL(0x40), RET), A0 | SP, 0, false, false, "sub", "stack moved at +0", 0, 1},
	{"stack may move for free", CODE(SUB_RSP, CALL(0x40), RET), A0, 4, true, false, "call", "", 0, 1},
	{"argument overwritten", CODE(XOR_EDI, PUSH_RBX, RET), A0, 0, false, false, "xor", "argument 0 lost at +0", 0, 1},
	{"its low byte too", CODE(MOV_DIL, PUSH_RBX, RET), A0, 0, false, false, "mov", "argument 0 lost", 0, 1},
	{"another argument does not matter", CODE(XOR_EDI, PUSH_RBX, RET), A1, 2, true, false, "push", "", 0, 1},
	{"implicit result of mul", CODE(MUL_RSI, PUSH_RBX, RET), A0 | A2, 0, false, false, "mul", "argument 2 lost", 0, 1},
	{"lea writes only its result", CODE(LEA_RDI_RSI, PUSH_RBX, RET), A0, 4, true, false, "push", "", 0, 1},
	{"moved to another argument register", CODE(MOV_RDI_RSI, XOR_EDI, PUSH_RBX, RET), A0 | SP, 5, true, false, "push", "", 1, 1},
	{"both shifted by one", CODE(MOV_RSI_RDX, MOV_RDI_RSI, XOR_EDI, JMP32(0x40)), A0 | A1 | SP, 8, true, false, "jmp", "", 1, 2},
	{"half a move is none", CODE(MOV_EDI_ESI, XOR_EDI, PUSH_RBX, RET), A0, 0, false, false, "mov", "argument 0 lost", 0, 1},
	{"moved where no argument is", CODE(MOV_RDI_RBX, XOR_EDI, PUSH_RBX, RET), A0, 0, false, false, "mov", "argument 0 lost", 0, 1},
	{"jump back into the prologue", CODE(MOV_RDI_RBX, PUSH_RBX, TEST_RDI, JE(1), NOP, JMP8(-9), RET), A0, 0, false, false, "mov", "a jump goes back to +3", 0, 1},
	{"jump back before the probe", CODE(MOV_RDI_RBX, LEA_RDI_RSI, PUSH_RBX, JMP8(-7)), A0, 0, false, false, "mov", "a jump goes back to +3", 0, 1},
	{"jump back behind the probe", CODE(MOV_RDI_RBX, PUSH_RBX, NOP, JMP8(-3)), A0, 3, true, false, "push", "", 0, 1},
	{"jump back to the entry", CODE(MOV_RDI_RBX, PUSH_RBX, JMP8(-6)), A0, 3, true, false, "push", "", 0, 1},
	{"+0 does not care about jumps", CODE(PUSH_RBX, NOP, JMP8(-3)), A0, 0, true, false, "push", "", 0, 1},
	{"NULL check not to be passed", CODE(TEST_RDI, JE(9), PUSH_RBX, RET), A0, 3, true, false, "je", "", 0, 1},
	{"NULL check of free", CODE(TEST_RDI, JE(9), PUSH_RBX, RET), A0 | NULL_OK, 5, true, true, "push", "", 0, 1},
	{"NULL check behind a push", CODE(PUSH_RBX, TEST_RDI, JE(9), PUSH_R12, RET), A0 | NULL_OK, 6, true, true, "push", "", 0, 1},
	{"NULL check with mov between", CODE(TEST_RDI, MOV_RDI_RBX, JE(9), PUSH_RBX, RET), A0 | NULL_OK, 8, true, true, "push", "", 0, 1},
	{"NULL check of a copy", CODE(MOV_RDI_RCX, XOR_EDI, TEST_RCX, JE(9), PUSH_RBX, RET), A0 | NULL_OK, 10, true, true, "push", "", 3, 1},
	{"32-bit test is none", CODE(TEST_EDI, JE(9), PUSH_RBX, RET), A0 | NULL_OK, 2, true, false, "je", "", 0, 1},
	{"test of another argument", CODE(TEST_RSI, JE(9), PUSH_RBX, RET), A0 | NULL_OK, 3, true, false, "je", "", 0, 1},
	{"jne leaves for the block", CODE(TEST_RDI, JNE(9), PUSH_RBX, RET), A0 | NULL_OK, 3, true, false, "jne", "", 0, 1},
	{"nothing behind the check: the check", CODE(TEST_RDI, JE(9), XOR_EDI, RET), A0 | NULL_OK, 3, true, false, "je", "", 0, 1},
	{"argument lost behind the check", CODE(TEST_RDI, JE(9), XOR_EDI, PUSH_RBX, RET), A0 | NULL_OK, 3, true, false, "je", "", 0, 1},
	{"ret ends the search", CODE(MOV_RDI_RBX, RET, PUSH_RBX), A0, 0, false, false, "mov", "no instruction", 0, 1},
	{"indirect jump ends it", CODE(JMP_RAX, PUSH_RBX), A0, 0, false, false, "jmp", "no instruction", 0, 1},
	{"function shorter than its push", CODE(MOV_RDI_RBX), A0, 0, false, false, "mov", "no instruction", 0, 1},
	{"sixteen instructions, no more", CODE(X4(X4(MOV_RDI_RBX)), PUSH_RBX), A0, 0, false, false, "mov", "no instruction", 0, 1},
	{"the sixteenth", CODE(X4(MOV_RAX_MEM), X4(MOV_RAX_MEM), X4(MOV_RAX_MEM), MOV_RAX_MEM, MOV_RAX_MEM, MOV_RAX_MEM, PUSH_RBX), A0, 45, true, false, "push", "", 0, 1},
	{"64 bytes, no more", CODE(X4(X4(CMP_RDI)), PUSH_RBX), A0, 0, false, false, "cmp", "no instruction", 0, 1},
	{"not an instruction", CODE(0x06, PUSH_RBX), A0, 0, false, false, "", "no instruction", 0, 1},
	{"entry only: emulated", CODE(PUSH_RBX, RET), A0 | ENTRY, 0, true, false, "push", "", 0, 1},
	{"entry only: stepped", CODE(TEST_RDI, JE(9), PUSH_RBX, RET), A0 | NULL_OK | ENTRY, 0, false, false, "test", "", 0, 1},
};
/* clang-format on */

static struct made_elf code_elf(const uint8_t *code, size_t bytes)
{
	const struct made_section s = { .name = ".text",
					.type = SHT_PROGBITS,
					.flags = SHF_ALLOC | SHF_EXECINSTR,
					.data = code,
					.bytes = bytes };

	return keep_elf(made_elf_new(&s, 1));
}

TEST(test_cases)
{
	each_case(c, cases) {
		struct made_elf m = code_elf(c->code, c->bytes);
		struct placement_request req = {
			.fn_vaddr = made_elf_vaddr(&m, 1),
			.fn_bytes = c->bytes,
			.arg_mask = c->want & 0xff,
			.needs_entry_sp = c->want & SP,
			.null_check_ok = c->want & NULL_OK,
			.multibyte_nop_ok = c->want & NOPS_OK,
			.entry_only = c->want & ENTRY,
		};
		struct placement got;
		struct elf_file *ef;

		ef = open_elf(&m);
		assert_int_equal(placement_find(ef, &req, &got), 0);
		if (got.vaddr != req.fn_vaddr + c->off || got.is_emulated != c->is_emulated ||
		    got.skips_null != c->skips_null || !strstr(got.insn, c->insn) ||
		    !strstr(got.why, c->why) || (got.why[0] != 0) == got.is_emulated ||
		    got.arg_at[0] != c->arg0_at || got.arg_at[1] != c->arg1_at)
			fail_msg("%s: +%d %s%s '%s' '%s' args at %d %d", c->name,
				 (int)(got.vaddr - req.fn_vaddr),
				 got.is_emulated ? "emulated" : "stepped",
				 got.skips_null ? " skips NULL" : "", got.insn, got.why,
				 got.arg_at[0], got.arg_at[1]);
	}
}

/* A long function's size counts for jumps back, not only its first bytes. */
TEST(test_far_jump_back)
{
	uint8_t code[600];
	struct placement_request req = { .fn_bytes = sizeof(code), .arg_mask = 1 };
	struct placement got;
	struct elf_file *ef;
	struct made_elf m;
	int32_t back;

	memset(code, 0xcc, sizeof(code));
	memcpy(code, (const uint8_t[]){ MOV_RDI_RBX, PUSH_RBX }, 4);
	code[595] = 0xe9;
	back = 3 - 600;
	memcpy(code + 596, &back, 4);
	m = code_elf(code, sizeof(code));
	ef = open_elf(&m);
	req.fn_vaddr = made_elf_vaddr(&m, 1);
	assert_int_equal(placement_find(ef, &req, &got), 0);
	assert_false(got.is_emulated);
	req.fn_bytes = 100; /* the jump belongs to another function */
	assert_int_equal(placement_find(ef, &req, &got), 0);
	assert_true(got.is_emulated);
	req.fn_bytes = 0;
	assert_int_equal(placement_find(ef, &req, &got), 0);
	assert_false(got.is_emulated);
}

TEST(test_errors)
{
	struct made_elf m = code_elf(CODE(PUSH_RBX, RET));
	struct placement_request req = { .fn_vaddr = made_elf_vaddr(&m, 1) + 2, .fn_bytes = 1 };
	struct code_shape *sh = unit_keep(calloc(1, sizeof(*sh)), free);
	struct placement got;
	struct elf_file *ef;

	ef = open_elf(&m);
	assert_int_equal(placement_find(ef, &req, &got), -ENOENT);
	assert_int_equal(placement_shape(ef, req.fn_vaddr, 1, sh), -ENOENT);
	m.ehdr->e_machine = EM_AARCH64;
	ef = open_elf(&m);
	req.fn_vaddr -= 2;
	assert_int_equal(placement_find(ef, &req, &got), -ENOTSUP);
	assert_int_equal(placement_shape(ef, req.fn_vaddr, 1, sh), -ENOTSUP);
}

TEST(test_shape)
{
	/* call +0x40; je out; jmp inside; xor eax,eax; add rsp; pop rbx; ret; ret; jmp *slot; jmp *rax */
	static const uint8_t code[] = { CALL(0x40), JE(0x60), JMP8(0), 0x31, 0xc0,    0x48,    0x83,
					0xc4,	    0x08,     0x5b,    RET,  RET,     0xff,    0x25,
					0x10,	    0,	      0,       0,    JMP_RAX, PUSH_RBX };
	struct made_elf m = code_elf(code, sizeof(code));
	uint64_t v = made_elf_vaddr(&m, 1);
	struct code_shape *sh = unit_keep(calloc(1, sizeof(*sh)), free);
	struct elf_file *ef;

	ef = open_elf(&m);
	assert_int_equal(placement_shape(ef, v, sizeof(code), sh), 0);
	assert_int_equal(sh->out_cnt, 3);
	assert_int_equal(sh->out[0].target_vaddr, v + 5 + 0x40);
	assert_false(sh->out[0].is_jump);
	assert_int_equal(sh->out[1].target_vaddr, v + 7 + 0x60);
	assert_true(sh->out[1].is_jump);
	assert_false(sh->out[1].is_slot);
	assert_int_equal(sh->out[2].target_vaddr, v + 24 + 0x10);
	assert_true(sh->out[2].is_jump && sh->out[2].is_slot);
	assert_int_equal(sh->ret_cnt, 2);
	assert_int_equal(sh->ret_zero_cnt, 1);
	assert_true(sh->has_indirect);
	assert_false(sh->is_cut);
}

TEST(test_shape_is_bounded)
{
	struct code_shape *sh = unit_keep(calloc(1, sizeof(*sh)), free);
	uint8_t code[5 * 100];
	struct elf_file *ef;
	struct made_elf m;
	size_t i;

	for (i = 0; i < sizeof(code); i += 5)
		memcpy(code + i, (const uint8_t[]){ 0xe8, 0, 0, 1, 0 }, 5);
	m = code_elf(code, sizeof(code));
	ef = open_elf(&m);
	assert_int_equal(placement_shape(ef, made_elf_vaddr(&m, 1), sizeof(code), sh), 0);
	assert_int_equal(sh->out_cnt, CODE_BRANCHES_CAP);
	assert_int_equal(sh->insn_cnt, 100);
	assert_true(sh->is_cut);
}

/* .eh_frame_hdr by hand: {vaddr, found, start, end}. */
TEST(test_fde_index)
{
	static const int32_t pairs[] = { -0x1000, 0, -0x800, 0, 0x10, 0 };
	uint8_t hdr[12 + sizeof(pairs)] = { 1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0, 3, 0, 0, 0 };
	const struct made_section s = { .name = ".eh_frame_hdr",
					.type = SHT_PROGBITS,
					.flags = SHF_ALLOC,
					.data = hdr,
					.bytes = sizeof(hdr) };
	static const struct {
		int64_t at;
		bool found;
		int64_t start, end;
	} finds[] = {
		{ -0x1001, false, 0, 0 },	   { -0x1000, true, -0x1000, -0x800 },
		{ -0x801, true, -0x1000, -0x800 }, { -0x800, true, -0x800, 0x10 },
		{ 0xf, true, -0x800, 0x10 },	   { 0x10, false, 0, 0 },
	};
	struct fde_index ix;
	struct elf_file *ef;
	struct made_elf m;
	uint64_t v, start, end;

	memcpy(hdr + 12, pairs, sizeof(pairs));
	m = keep_elf(made_elf_new(&s, 1));
	v = made_elf_vaddr(&m, 1);
	ef = open_elf(&m);
	fde_index_init(ef, &ix);
	each_case(c, finds) {
		bool found = fde_index_find(&ix, v + (uint64_t)c->at, &start, &end);

		assert_int_equal(found, c->found);
		if (found) {
			assert_int_equal(start, v + (uint64_t)c->start);
			assert_int_equal(end, v + (uint64_t)c->end);
		}
	}
	/* A count that the section does not hold, and another version. */
	m.data[m.shdrs[1].sh_offset + 8] = 200;
	ef = open_elf(&m);
	fde_index_init(ef, &ix);
	assert_int_equal(ix.cnt, 3);
	m.data[m.shdrs[1].sh_offset] = 2;
	ef = open_elf(&m);
	fde_index_init(ef, &ix);
	assert_int_equal(ix.cnt, 0);
	assert_false(fde_index_find(&ix, v, &start, &end));
}

RUN_TESTS()
