/* SPDX-License-Identifier: MIT */
/*
 * test_tap_spot.c - which instruction of a function becomes a jump, on hand-assembled functions.
 */
#include "unit.h"

#include <elf.h>

#include "alloc/tap_spot.h"
#include "open_elf.h"
#include "elf/unwind_table.h"

#define CODE(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

#define ENDBR64 0xf3, 0x0f, 0x1e, 0xfa
#define PUSH_RBX 0x53
#define PUSH_RDI 0x57
#define PUSH_R12 0x41, 0x54
#define SUB_RSP 0x48, 0x83, 0xec, 0x18
#define RET 0xc3
#define MOV_RDI_RBX 0x48, 0x89, 0xfb
#define MOV_RDI_RBP 0x48, 0x89, 0xfd
#define MOV_RSI_RDI 0x48, 0x89, 0xf7
#define MOV_RDI_R11 0x49, 0x89, 0xfb
#define CMPB_RIP 0x80, 0x3d, 0x10, 0, 0, 0, 0 /* cmpb $0,16(%rip) */
#define LEA_RSI 0x48, 0x8d, 0x77, 0xf0 /* lea -16(%rdi),%rsi */
#define MOV_FS 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0 /* mov %fs:0,%rax */
#define STORE 0x48, 0x89, 0x3e /* mov %rdi,(%rsi) */
#define MOV_IMM 0xb8, 1, 0, 0, 0 /* mov $1,%eax: leaves the flags alone */
#define TEST_RDI 0x48, 0x85, 0xff
#define JE(d) 0x74, (d)
#define JMP8(d) 0xeb, (uint8_t)(d)
#define JMP32(d) 0xe9, (d), 0, 0, 0
#define CALL(d) 0xe8, (d), 0, 0, 0
#define CALL_SLOT 0xff, 0x15, 0x40, 0, 0, 0
#define JMP_SLOT 0xff, 0x25, 0x40, 0, 0, 0
#define CALL_RAX 0xff, 0xd0
#define NOP7 0x0f, 0x1f, 0x80, 0, 0, 0, 0
#define SETE 0x0f, 0x94, 0xc0

#define RED_ZONE 0x48, 0x89, 0x7c, 0x24, 0xf8 /* mov %rdi,-8(%rsp) */
#define FRAME 0x48, 0x89, 0x7d, 0xf8 /* mov %rdi,-8(%rbp) */
#define JRCXZ 0xe3, 0x10
#define CMP_IMM 0x48, 0x81, 0xff, 0, 0x10, 0, 0 /* cmp $0x1000,%rdi */
#define JA32 0x0f, 0x87, 0x80, 0, 0, 0
#define JA8 0x77, 0x20
#define INC_RDI_MEM 0x48, 0x83, 0x47, 8, 1 /* addq $1,8(%rdi) */
#define CMP_MEM 0x48, 0x39, 0x7e, 8 /* cmp %rdi,8(%rsi) */
#define MOV_RDI_RAX 0x48, 0x89, 0xf8
#define MOV_RDI_R10 0x49, 0x89, 0xfa
#define MUL_RSI 0x48, 0xf7, 0xe6
#define TEST_RAX 0x48, 0x85, 0xc0
#define ADD_RAX 0x48, 0x83, 0xc0, 8
#define JS32 0x0f, 0x88, 0x80, 0, 0, 0
#define MOV8_EDX 0xb2, 1 /* mov $1,%dl */
#define XOR_ECX 0x31, 0xc9

#define NO_SPOT (-1)
#define FREE true

/* clang-format off */
static const struct {
	const char *name;
	const uint8_t *code;
	size_t bytes;
	bool is_free;
	int off, gap; /* of the instruction and its gap; 0: no gap */
	enum tap_move move;
	int undo[4]; /* as tap_spot.undo; ends with -1 */
	const char *why;
	int flags; /* as tap_spot.flags_insn */
	int probe; /* offset of heaptap's own probe; 0: none */
	int next; /* offset of the next symbol; 0: none */
	bool scratch;
	int branch, branch_gap; /* offsets of a branch before it and its gap; 0: none */
} cases[] = {
	{"not at the entry", CODE(CMPB_RIP), false, NO_SPOT, 0, 0, {-1}, .why = "other tools put breakpoints"},
	{"nor with a prefix that is no REX", CODE(MOV_FS), false, NO_SPOT, 0, 0, {-1}, .why = "other tools put breakpoints"},
	{"there only behind a REX prefix", CODE(CMP_IMM, RET), false, 0, 0, TAP_MOVE_COPY, {-1}, .why = ""},
	{"rather behind it", CODE(CMP_IMM, CMPB_RIP, RET), false, 7, 0, TAP_MOVE_RIP, {-1}, .why = ""},
	{"behind endbr64 the entry is over", CODE(ENDBR64, CMPB_RIP, RET), false, 4, 0, TAP_MOVE_RIP, {-1}, .why = ""},
	{"rip-relative", CODE(PUSH_RBX, CMPB_RIP, RET), false, 1, 0, TAP_MOVE_RIP, {3, -1}, .why = ""},
	{"a saved register may be written", CODE(PUSH_RBX, MOV_RDI_RBX, CMPB_RIP, RET), false, 4, 0, TAP_MOVE_RIP, {3, -1}, .why = ""},
	{"one that is not saved may not", CODE(PUSH_RBX, MOV_RDI_RBP, CMPB_RIP, RET), false, NO_SPOT, 0, 0, {-1}, .why = "no gap"},
	{"undone from the last to the first", CODE(PUSH_R12, PUSH_RBX, SUB_RSP, CMPB_RIP, RET), false, 7, 0, TAP_MOVE_RIP, {TAP_UNDO_ADD + 3, 3, 12, -1}, .why = ""},
	{"a push of an argument is room", CODE(PUSH_RDI, CMPB_RIP, RET), false, 1, 0, TAP_MOVE_RIP, {TAP_UNDO_ADD + 1, -1}, .why = ""},
	{"a short one needs a gap", CODE(PUSH_RBX, MOV_RDI_RBX, RET), false, NO_SPOT, 0, 0, {-1}, .why = "no gap within reach at +1"},
	{"behind a ret is one", CODE(PUSH_RBX, MOV_RDI_RBX, RET, NOP7, RET), false, 1, 5, TAP_MOVE_COPY, {3, -1}, .why = ""},
	{"what runs is none", CODE(PUSH_RBX, MOV_RDI_RBX, NOP7, RET), false, NO_SPOT, 0, 0, {-1}, .why = "no gap"},
	{"nor what is jumped to", CODE(PUSH_RBX, MOV_RDI_RBX, RET, NOP7, JMP8(-9)), false, NO_SPOT, 0, 0, {-1}, .why = "no gap"},
	{"a jump to another function keeps its opcode", CODE(JMP32(0x40)), false, 0, 0, TAP_MOVE_JUMP, {-1}, .why = ""},
	{"a call", CODE(PUSH_RBX, CALL(0x40), RET), false, 1, 0, TAP_MOVE_CALL, {3, -1}, .why = ""},
	{"a call through a slot", CODE(SUB_RSP, CALL_SLOT, RET), false, 4, 0, TAP_MOVE_SLOT_CALL, {TAP_UNDO_ADD + 3, -1}, .why = ""},
	{"a jump through a slot keeps its opcode", CODE(JMP_SLOT), false, 0, 0, TAP_MOVE_SLOT_JUMP, {-1}, .why = ""},
	{"not one through a register", CODE(SUB_RSP, CALL_RAX, RET), false, NO_SPOT, 0, 0, {-1}, .why = "cannot be moved"},
	{"nothing behind a store", CODE(STORE, CMPB_RIP, RET), false, NO_SPOT, 0, 0, {-1}, .why = ""},
	{"an argument is lost", CODE(MOV_RSI_RDI, CMPB_RIP, RET), false, NO_SPOT, 0, 0, {-1}, .why = ""},
	{"a register that nobody reads may be", CODE(XOR_ECX, CMPB_RIP, RET), false, 2, 0, TAP_MOVE_RIP, {-1}, .why = ""},
	{"mul after what it multiplies", CODE(MOV_RDI_RAX, MUL_RSI, CMPB_RIP, RET), false, 6, 0, TAP_MOVE_RIP, {-1}, .why = ""},
	{"not before", CODE(MUL_RSI, CMPB_RIP, RET), false, NO_SPOT, 0, 0, {-1}, .why = "state at the entry is lost at +0"},
	{"not a part of a register", CODE(MOV8_EDX, CMPB_RIP, RET), false, NO_SPOT, 0, 0, {-1}, .why = "state at the entry is lost at +0"},
	{"r10 is saved then", CODE(MOV_RDI_R10, CMPB_RIP, RET), false, 3, 0, TAP_MOVE_RIP, {-1}, .why = "", .scratch = true},
	{"a jump goes back into it", CODE(PUSH_RBX, CMPB_RIP, JMP8(-8)), false, NO_SPOT, 0, 0, {-1}, .why = "a jump goes back"},
	{"another function begins in it", CODE(PUSH_RBX, CMPB_RIP, RET), false, NO_SPOT, 0, 0, {-1}, .why = "another function", .next = 4},
	{"flags are made again", CODE(CMP_IMM, JA32, RET), false, 7, 0, TAP_MOVE_BRANCH, {-1}, .why = "", .flags = 1},
	{"flags of an argument", CODE(PUSH_RBX, TEST_RDI, JA32, RET), false, 4, 0, TAP_MOVE_BRANCH, {3, -1}, .why = "", .flags = 2},
	{"not those of what changes its operand", CODE(PUSH_RBX, MOV_RDI_RAX, ADD_RAX, JS32, RET), false, NO_SPOT, 0, 0, {-1}, .why = ""},
	{"nor of an operand that changes", CODE(PUSH_RBX, MOV_RDI_RAX, TEST_RAX, MOV_RDI_RAX, JS32, RET), false, NO_SPOT, 0, 0, {-1}, .why = ""},
	{"nor of memory that is an argument's", CODE(PUSH_RBX, CMP_MEM, JS32, RET), false, NO_SPOT, 0, 0, {-1}, .why = ""},
	{"nor of room on the stack", CODE(SUB_RSP, JS32, RET), false, NO_SPOT, 0, 0, {-1}, .why = ""},
	{"not where heaptap's own probe may be", CODE(CMPB_RIP, JA32, RET), false, NO_SPOT, 0, 0, {-1}, .why = "other tools put breakpoints", .probe = 7},
	{"but where a jump gets another target", CODE(XOR_ECX, JMP32(0x40)), false, 2, 0, TAP_MOVE_JUMP, {-1}, .why = "", .probe = 2},
	{"a branch and what is behind it", CODE(CMPB_RIP, JA32, CMP_IMM, RET), false, 13, 0, TAP_MOVE_COPY, {-1}, .why = "", .flags = 1, .probe = 7, .branch = 7},
	{"with a gap each", CODE(CMPB_RIP, JA8, MOV_RDI_RAX, RET, NOP7, NOP7), false, 9, 13, TAP_MOVE_COPY, {-1}, .why = "", .flags = 1, .probe = 7, .branch = 7, .branch_gap = 18},
	{"not if there is but one", CODE(CMPB_RIP, JA8, MOV_RDI_RAX, RET, NOP7), false, NO_SPOT, 0, 0, {-1}, .why = "", .probe = 7},
	{"nor if somebody jumps to the second", CODE(CMPB_RIP, JA32, CMP_IMM, JMP8(-9)), false, NO_SPOT, 0, 0, {-1}, .why = "", .probe = 7},
	{"nor if its first byte cannot stay", CODE(CMPB_RIP, JA32, CMPB_RIP, RET), false, NO_SPOT, 0, 0, {-1}, .why = "", .probe = 7},
	{"free: behind the NULL check", CODE(TEST_RDI, JE(10), MOV_FS, RET), FREE, 5, 0, TAP_MOVE_COPY, {-1}, .why = ""},
	{"free: flags that are read later", CODE(TEST_RDI, MOV_IMM, SETE, RET), FREE, 3, 0, TAP_MOVE_COPY, {-1}, .why = "", .flags = 1},
	{"free: the argument may be moved", CODE(MOV_RDI_RBX, LEA_RSI, MOV_FS, RET), FREE, 7, 0, TAP_MOVE_COPY, {-1}, .why = ""},
	{"free: not behind what is below the stack pointer", CODE(RED_ZONE, MOV_FS, RET), FREE, NO_SPOT, 0, 0, {-1}, .why = "the argument is lost, or the path ends"},
	{"free: nor in a frame", CODE(FRAME, MOV_FS, RET), FREE, NO_SPOT, 0, 0, {-1}, .why = "the argument is lost, or the path ends"},
	{"free: nor anywhere else", CODE(INC_RDI_MEM, MOV_FS, RET), FREE, NO_SPOT, 0, 0, {-1}, .why = "the argument is lost, or the path ends"},
	{"a branch of another kind is not moved", CODE(PUSH_RBX, JRCXZ, MOV_FS, RET), false, NO_SPOT, 0, 0, {-1}, .why = "cannot be moved"},
	{"free: nor passed", CODE(JRCXZ, MOV_FS, RET), FREE, NO_SPOT, 0, 0, {-1}, .why = "the argument is lost, or the path ends"},
	{"free: but not lost", CODE(MOV_RSI_RDI, MOV_FS, RET), FREE, NO_SPOT, 0, 0, {-1}, .why = ""},
	{"free: r11 is saved then", CODE(MOV_RDI_R11, MOV_FS, RET), FREE, 3, 0, TAP_MOVE_COPY, {-1}, .why = "", .scratch = true},
};
/* clang-format on */

/* In front of and behind the function there is code that runs. */
#define AROUND 160

static void check_case(size_t i, const struct tap_spot *got, uint64_t fn_vaddr)
{
	int64_t off = got->vaddr ? (int64_t)(got->vaddr - fn_vaddr) : NO_SPOT;
	int64_t gap = got->gap_vaddr ? (int64_t)(got->gap_vaddr - fn_vaddr) : 0;
	int undo = 0;

	if (off != cases[i].off || gap != cases[i].gap || !strstr(got->why, cases[i].why) ||
	    (off >= 0 && (got->insn.move != cases[i].move || got->flags_insn != cases[i].flags ||
			  got->uses_scratch != cases[i].scratch)))
		fail_msg("%s: +%d, gap +%d, move %d, flags %d '%s'", cases[i].name, (int)off,
			 (int)gap, got->insn.move, got->flags_insn, got->why);
	if (off >= 0 &&
	    (got->branch_vaddr != (cases[i].branch ? fn_vaddr + (uint64_t)cases[i].branch : 0) ||
	     got->branch_gap_vaddr !=
		     (cases[i].branch_gap ? fn_vaddr + (uint64_t)cases[i].branch_gap : 0)))
		fail_msg("%s: branch at %llx, gap at %llx", cases[i].name,
			 (unsigned long long)(got->branch_vaddr - fn_vaddr),
			 (unsigned long long)(got->branch_gap_vaddr - fn_vaddr));
	if (!tap_spot_is_sound(got))
		fail_msg("%s: not sound", cases[i].name);
	while (off >= 0 && cases[i].undo[undo] >= 0 && undo < got->undo_cnt &&
	       got->undo[undo] == cases[i].undo[undo])
		undo++;
	if (off >= 0 && (undo != got->undo_cnt || cases[i].undo[undo] >= 0))
		fail_msg("%s: undo %d of %d", cases[i].name, undo, got->undo_cnt);
}

TEST(test_cases)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t code[2 * AROUND + 64];
		/* Without a table of functions symbols tell where they are. */
		Elf64_Sym syms[4] = { 0 };
		const struct made_section sections[] = {
			{ .name = ".text",
			  .type = SHT_PROGBITS,
			  .flags = SHF_ALLOC | SHF_EXECINSTR,
			  .data = code,
			  .bytes = sizeof(code) },
			{ .name = ".symtab",
			  .type = SHT_SYMTAB,
			  .link = 3,
			  .info = 1,
			  .data = syms,
			  .bytes = sizeof(syms),
			  .entry_bytes = sizeof(*syms) },
			{ .name = ".strtab", .type = SHT_STRTAB, .data = "\0a\0f\0b", .bytes = 7 },
		};
		const uint64_t begin[] = { 0, AROUND, AROUND + cases[i].bytes };
		struct fde_index fdes = { 0 };
		struct tap_gaps gaps = { 0 };
		struct tap_spot got;
		struct tap_spot_request req = { .fn_bytes = cases[i].bytes,
						.arg_mask = 3,
						.is_free = cases[i].is_free };
		struct elf_symbols *symbols;
		struct elf_file *ef;
		struct made_elf m;
		uint64_t vaddr;

		memset(code, 0x90, sizeof(code));
		memcpy(code + AROUND, cases[i].code, cases[i].bytes);
		m = keep_elf(made_elf_new(sections, 3));
		vaddr = made_elf_vaddr(&m, 1);
		for (int k = 0; k < 3; k++)
			syms[1 + k] = (Elf64_Sym){ .st_name = 1 + 2 * k,
						   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
						   .st_shndx = 1,
						   .st_value = vaddr + begin[k],
						   .st_size = 1 };
		memcpy(m.data + m.shdrs[2].sh_offset, syms, sizeof(syms));
		req.fn_vaddr = vaddr + AROUND;
		req.probe_vaddr[0] = cases[i].probe ? req.fn_vaddr + (uint64_t)cases[i].probe : 0;
		req.next_vaddr = cases[i].next ? req.fn_vaddr + (uint64_t)cases[i].next : 0;
		ef = open_elf(&m);
		symbols = load_symbols(ef, NULL);
		assert_int_equal(tap_spot_find(ef, &fdes, symbols, &req, &gaps, &got), 0);
		check_case(i, &got, req.fn_vaddr);
	}
}

RUN_TESTS()
