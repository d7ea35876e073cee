/* SPDX-License-Identifier: MIT */
/*
 * test_cfi.c - frame information written by hand, byte by byte, and the rows that it must become.
 *
 * Each case is an ELF image that holds nothing but .eh_frame or .debug_frame and a text segment.
 */
#include "unit.h"

#include <dwarf.h>
#include <elf.h>

#include "../lib/find_row.h"
#include "elf/elf_file.h"
#include "elf/unwind_table.h"

#define IMAGE_CAP 8192
#define FRAME_OFF 0x200 /* the section with frame information */
#define FRAME_VADDR 0x200
#define TEXT_VADDR 0x100000
#define TEXT_BYTES 0x100000
#define ROWS_CAP 12

struct image {
	uint8_t bytes[IMAGE_CAP];
	size_t cnt; /* end of the section */
};

static void put(struct image *im, const void *data, size_t bytes)
{
	assert_true(im->cnt + bytes <= IMAGE_CAP - 1024);
	memcpy(im->bytes + im->cnt, data, bytes);
	im->cnt += bytes;
}

static void put_u(struct image *im, uint64_t v, size_t bytes)
{
	put(im, &v, bytes);
}

static void image_init(struct image *im)
{
	memset(im, 0, sizeof(*im));
	im->cnt = FRAME_OFF;
}

/* Entries begin with a length that is known at their end. */
static size_t entry_begin(struct image *im)
{
	put_u(im, 0, 4);
	return im->cnt;
}

static void entry_end(struct image *im, size_t start)
{
	uint32_t bytes = (uint32_t)(im->cnt - start);

	memcpy(im->bytes + start - 4, &bytes, 4);
}

#define RBP 6
#define RSP 7
#define RIP 16

/* def_cfa rsp+8, rip at cfa-8 */
static const uint8_t usual_insn[] = { DW_CFA_def_cfa, RSP, 8, DW_CFA_offset | RIP, 1 };

struct cie_spec {
	const char *aug;
	uint8_t version, encoding;
	uint8_t code_align;
};

static size_t put_cie(struct image *im, const struct cie_spec *spec, bool is_debug_frame)
{
	size_t off = im->cnt - FRAME_OFF, start = entry_begin(im), aug_bytes_at;
	const char *a;

	put_u(im, is_debug_frame ? 0xffffffff : 0, 4);
	put_u(im, spec->version, 1);
	put(im, spec->aug, strlen(spec->aug) + 1);
	if (spec->version == 4)
		put(im, "\10\0", 2);
	if (!strncmp(spec->aug, "eh", 2))
		put_u(im, 0x1122334455667788, 8);
	put_u(im, spec->code_align, 1);
	put_u(im, 0x78, 1); /* -8 */
	put_u(im, RIP, 1);
	if (spec->aug[0] == 'z') {
		aug_bytes_at = im->cnt;
		put_u(im, 0, 1);
		for (a = spec->aug + 1; *a; a++) {
			if (*a == 'P')
				put(im, "\x9b\1\2\3\4", 5);
			else if (*a == 'L')
				put_u(im, DW_EH_PE_pcrel | DW_EH_PE_sdata4, 1);
			else if (*a == 'R')
				put_u(im, spec->encoding, 1);
		}
		im->bytes[aug_bytes_at] = (uint8_t)(im->cnt - aug_bytes_at - 1);
	}
	put(im, usual_insn, sizeof(usual_insn));
	entry_end(im, start);
	return off;
}

static void put_fde(struct image *im, const struct cie_spec *spec, size_t cie_off,
		    bool is_debug_frame, uint64_t pc, uint64_t bytes, const uint8_t *insn,
		    size_t insn_bytes)
{
	size_t start = entry_begin(im), value_bytes = 8;
	uint64_t vaddr = FRAME_VADDR + (im->cnt - FRAME_OFF) + 4;
	uint8_t encoding = spec->aug[0] == 'z' ? spec->encoding : DW_EH_PE_absptr;

	put_u(im, is_debug_frame ? cie_off : start - FRAME_OFF - cie_off, 4);
	if ((encoding & 0x07) == DW_EH_PE_udata4)
		value_bytes = 4;
	else if ((encoding & 0x07) == DW_EH_PE_udata2)
		value_bytes = 2;
	put_u(im, (encoding & 0x70) == DW_EH_PE_pcrel ? pc - vaddr : pc, value_bytes);
	put_u(im, bytes, value_bytes);
	if (spec->aug[0] == 'z')
		put_u(im, 0, 1);
	put(im, insn, insn_bytes);
	entry_end(im, start);
}

static void put_section(Elf64_Shdr *sh, uint32_t name, uint32_t type, uint64_t off, uint64_t bytes)
{
	sh->sh_name = name;
	sh->sh_type = type;
	sh->sh_addr = off;
	sh->sh_offset = off;
	sh->sh_size = bytes;
	sh->sh_addralign = 1;
}

/* Headers around what has been put. */
static struct elf_file *image_open(struct image *im, const char *section_name, uint64_t entry)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)im->bytes;
	Elf64_Phdr *ph = (Elf64_Phdr *)(im->bytes + sizeof(*eh));
	size_t frame_end = im->cnt, names = (frame_end + 7) & ~7UL;
	Elf64_Shdr *sh = (Elf64_Shdr *)(im->bytes + names + 64);
	struct elf_file *ef = NULL;

	memcpy(eh->e_ident, ELFMAG, SELFMAG);
	eh->e_ident[EI_CLASS] = ELFCLASS64;
	eh->e_ident[EI_DATA] = ELFDATA2LSB;
	eh->e_ident[EI_VERSION] = EV_CURRENT;
	eh->e_type = ET_DYN;
	eh->e_machine = EM_X86_64;
	eh->e_version = EV_CURRENT;
	eh->e_entry = entry;
	eh->e_phoff = sizeof(*eh);
	eh->e_phentsize = sizeof(*ph);
	eh->e_phnum = 2;
	eh->e_ehsize = sizeof(*eh);
	eh->e_shoff = names + 64;
	eh->e_shentsize = sizeof(*sh);
	eh->e_shnum = 3;
	eh->e_shstrndx = 2;
	ph[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R, .p_align = 0x1000 };
	ph[0].p_filesz = ph[0].p_memsz = frame_end;
	ph[1] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_align = 0x1000 };
	ph[1].p_vaddr = TEXT_VADDR;
	ph[1].p_memsz = TEXT_BYTES;
	ph[1].p_filesz = 8; /* too short for the scanner of gaps */
	memcpy(im->bytes + names + 1, section_name, strlen(section_name));
	memcpy(im->bytes + names + 32, ".shstrtab", 9);
	put_section(&sh[1], 1, SHT_PROGBITS, FRAME_OFF, frame_end - FRAME_OFF);
	put_section(&sh[2], 32, SHT_STRTAB, names, 64);
	assert_int_equal(elf_file_open_mem(im->bytes, IMAGE_CAP, &ef), 0);
	return ef;
}

struct expected_row {
	uint32_t at; /* from the function's start */
	struct ht_row row; /* pc_lo is not compared */
};

#define ROW(at, ...)                            \
	{                                       \
		at,                             \
		{                               \
			.pc_lo = 0, __VA_ARGS__ \
		}                               \
	}
#define RSP_ROW(at, off) ROW(at, .cfa = HT_CFA_RSP, .cfa_off = (off))
#define NO_ROW(at) ROW(at, .cfa = HT_CFA_NONE)
#define UNSUPPORTED_ROW(at) ROW(at, .cfa = HT_CFA_UNSUPPORTED)

static void assert_row(const struct unwind_table *t, uint64_t vaddr, const struct ht_row *want)
{
	const struct ht_row *row = find_row(t, vaddr);

	if (!row) {
		assert_int_equal(want->cfa, HT_CFA_NONE);
		return;
	}
	assert_int_equal(row->cfa, want->cfa);
	assert_int_equal(row->cfa_off, want->cfa_off);
	assert_int_equal(row->rbp, want->rbp);
	assert_int_equal(row->rbp_off, want->rbp_off);
}

/* What every table promises to BPF. */
static void assert_sound(const struct unwind_table *t)
{
	uint32_t i, j, seen = 0;

	for (i = 0; i < t->page_cnt; i++) {
		const struct unwind_page *p = &t->pages[i];
		const struct ht_row *rows = t->rows + p->first;

		if (!p->row_cnt)
			continue;
		assert_int_equal(p->first, seen);
		assert_int_equal(rows[0].pc_lo, 0);
		for (j = 1; j < p->row_cnt; j++) {
			assert_true(rows[j].pc_lo > rows[j - 1].pc_lo);
			assert_memory_not_equal(&rows[j].cfa, &rows[j - 1].cfa, sizeof(*rows) - 2);
		}
		seen += p->row_cnt;
	}
	assert_int_equal(seen, t->row_cnt);
}

struct program_case {
	const char *name;
	uint8_t insn[48];
	uint8_t insn_bytes;
	uint32_t bad_fde_cnt;
	const char *aug; /* NULL: "zR" */
	struct expected_row rows[ROWS_CAP]; /* of a function of 0x100 bytes; cnt by `at` rising */
};

#define INSN(...) .insn = { __VA_ARGS__ }, .insn_bytes = sizeof((uint8_t[]){ __VA_ARGS__ })
#define ADVANCE(n) (DW_CFA_advance_loc | (n))
#define SAVE_RBP_ROW(at, off) \
	ROW(at, .cfa = HT_CFA_RSP, .cfa_off = (off), .rbp = HT_RBP_AT_CFA, .rbp_off = -2)
#define WIDE_ROW(at, off, where, rbp_at)                                                    \
	ROW(at, .cfa = HT_CFA_RSP_WIDE, .cfa_off = (int16_t)((off)&0xffff), .rbp = (where), \
	    .rbp_off = (int16_t)((off) >> 16 << 8 | ((rbp_at)&0xff)))
#define PLT_EXPR(lit)                                                                           \
	DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, \
		(lit), DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus

static const struct program_case program_cases[] = {
	{ "nothing said: the CIE's row", INSN(DW_CFA_nop), .rows = { RSP_ROW(0, 1) } },
	{ "push rbp; mov rsp, rbp; leave",
	  INSN(ADVANCE(1), DW_CFA_def_cfa_offset, 16, DW_CFA_offset | RBP, 2, ADVANCE(3),
	       DW_CFA_def_cfa_register, RBP, DW_CFA_advance_loc1, 0x80, DW_CFA_def_cfa, RSP, 8,
	       DW_CFA_restore | RBP),
	  .rows = { RSP_ROW(0, 1), SAVE_RBP_ROW(1, 2),
		    ROW(4, .cfa = HT_CFA_RBP, .cfa_off = 2, .rbp = HT_RBP_AT_CFA, .rbp_off = -2),
		    RSP_ROW(0x84, 1) } },
	{ "rules of other registers make no rows",
	  INSN(ADVANCE(1), DW_CFA_offset | 3, 2, ADVANCE(1), DW_CFA_offset_extended, 12, 3,
	       ADVANCE(1), DW_CFA_register, 13, 14, ADVANCE(1), DW_CFA_def_cfa_offset, 16),
	  .rows = { RSP_ROW(0, 1), RSP_ROW(4, 2) } },
	{ "remember and restore, nested",
	  INSN(ADVANCE(1), DW_CFA_def_cfa_offset, 16, DW_CFA_remember_state, ADVANCE(1),
	       DW_CFA_def_cfa_offset, 24, DW_CFA_remember_state, ADVANCE(1), DW_CFA_def_cfa_offset,
	       32, ADVANCE(1), DW_CFA_restore_state, ADVANCE(1), DW_CFA_restore_state),
	  .rows = { RSP_ROW(0, 1), RSP_ROW(1, 2), RSP_ROW(2, 3), RSP_ROW(3, 4), RSP_ROW(4, 3),
		    RSP_ROW(5, 2) } },
	{ "advance of 2 and 4 bytes, GNU_args_size",
	  INSN(DW_CFA_advance_loc2, 0x10, 0, DW_CFA_GNU_args_size, 0x80, 1, DW_CFA_def_cfa_offset,
	       16, DW_CFA_advance_loc4, 0x20, 0, 0, 0, DW_CFA_def_cfa_offset, 0xa0, 6),
	  .rows = { RSP_ROW(0, 1), RSP_ROW(0x10, 2), RSP_ROW(0x30, 100) } },
	{ "signed and extended forms",
	  INSN(DW_CFA_def_cfa_sf, RSP, 0x7e, ADVANCE(1), DW_CFA_def_cfa_offset_sf, 0x7d, ADVANCE(1),
	       DW_CFA_offset_extended_sf, RBP, 2, ADVANCE(1), DW_CFA_restore_extended, RBP,
	       ADVANCE(1), DW_CFA_GNU_negative_offset_extended, RBP, 1),
	  .rows = { RSP_ROW(0, 2), RSP_ROW(1, 3), SAVE_RBP_ROW(2, 3), RSP_ROW(3, 3),
		    ROW(4, .cfa = HT_CFA_RSP, .cfa_off = 3, .rbp = HT_RBP_AT_CFA, .rbp_off = 1) } },
	{ "rbp undefined, elsewhere, same again",
	  INSN(DW_CFA_undefined, RBP, ADVANCE(1), DW_CFA_same_value, RBP, ADVANCE(1),
	       DW_CFA_register, RBP, 3, ADVANCE(1), DW_CFA_val_offset, RBP, 2),
	  .rows = { ROW(0, .cfa = HT_CFA_RSP, .cfa_off = 1, .rbp = HT_RBP_UNDEFINED), RSP_ROW(1, 1),
		    ROW(2, .cfa = HT_CFA_RSP, .cfa_off = 1, .rbp = HT_RBP_UNDEFINED) } },
	{ "plt", INSN(ADVANCE(16), PLT_EXPR(DW_OP_lit11)),
	  .rows = { RSP_ROW(0, 1), ROW(16, .cfa = HT_CFA_PLT, .cfa_off = 11) } },
	{ "plt with endbr64", INSN(ADVANCE(16), PLT_EXPR(DW_OP_lit10)),
	  .rows = { RSP_ROW(0, 1), ROW(16, .cfa = HT_CFA_PLT, .cfa_off = 10) } },
	{ "plt that is none", INSN(ADVANCE(16), PLT_EXPR(DW_OP_const1u)),
	  .rows = { RSP_ROW(0, 1), UNSUPPORTED_ROW(16) } },
	{ "realigned stack: r10, then *(rbp - 8)",
	  INSN(ADVANCE(5), DW_CFA_def_cfa, 10, 0, ADVANCE(8), DW_CFA_expression, RBP, 2,
	       DW_OP_breg6, 0, ADVANCE(5), DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78,
	       DW_OP_deref),
	  .rows = { RSP_ROW(0, 1), UNSUPPORTED_ROW(5),
		    ROW(18, .cfa = HT_CFA_DEREF_RBP, .cfa_off = -1, .rbp = HT_RBP_AT_RBP) } },
	{ "old stack pointer on the stack",
	  INSN(DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0xc0, 0, DW_OP_deref),
	  .rows = { ROW(0, .cfa = HT_CFA_DEREF_RSP, .cfa_off = 8) } },
	{ "expression with more behind it",
	  INSN(DW_CFA_def_cfa_expression, 5, DW_OP_breg7, 40, DW_OP_deref, DW_OP_plus_uconst, 8),
	  .rows = { UNSUPPORTED_ROW(0) } },
	{ "the first frame of a thread", INSN(DW_CFA_undefined, RIP),
	  .rows = { ROW(0, .cfa = HT_CFA_END) } },
	{ "the return address somewhere else", INSN(DW_CFA_offset | RIP, 2),
	  .rows = { UNSUPPORTED_ROW(0) } },
	{ "the return address in a register", INSN(DW_CFA_register, RIP, 0),
	  .rows = { UNSUPPORTED_ROW(0) } },
	{ "a stack pointer that is not the CFA", INSN(DW_CFA_offset | RSP, 2),
	  .rows = { UNSUPPORTED_ROW(0) } },
	{ "a stack pointer that is", INSN(DW_CFA_val_offset, RSP, 0), .rows = { RSP_ROW(0, 1) } },
	{ "frames of 256 KiB, 4 MiB with rbp saved, and 128 MiB less 8 bytes",
	  INSN(DW_CFA_def_cfa_offset, 0xf8, 0xff, 0xf, ADVANCE(1), DW_CFA_def_cfa_offset, 0x80,
	       0x80, 0x10, ADVANCE(1), DW_CFA_offset | RBP, 2, DW_CFA_def_cfa_offset, 0x98, 0x80,
	       0x80, 0x2, ADVANCE(1), DW_CFA_def_cfa_offset, 0xf8, 0xff, 0xff, 0x3f),
	  .rows = { RSP_ROW(0, 32767), WIDE_ROW(1, 32768, HT_RBP_SAME, 0),
		    WIDE_ROW(2, 0x80003, HT_RBP_AT_CFA, -2),
		    WIDE_ROW(3, 0xffffff, HT_RBP_AT_CFA, -2) } },
	{ "a large frame with rbp far from its end",
	  INSN(DW_CFA_def_cfa_offset, 0x80, 0x80, 0x80, 0x2, DW_CFA_offset | RBP, 0x80, 0x1,
	       ADVANCE(1), DW_CFA_offset | RBP, 0x81, 0x1),
	  .rows = { WIDE_ROW(0, 0x80000, HT_RBP_AT_CFA, -128),
		    WIDE_ROW(1, 0x80000, HT_RBP_UNDEFINED, 0) } },
	{ "frame larger than rows can say", INSN(DW_CFA_def_cfa_offset, 0x80, 0x80, 0x80, 0x40),
	  .rows = { UNSUPPORTED_ROW(0) } },
	{ "offset that is no multiple of 8", INSN(DW_CFA_def_cfa_offset, 12),
	  .rows = { UNSUPPORTED_ROW(0) } },
	{ "signal frame", .aug = "zRS",
	  INSN(DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0xa0, 1, DW_OP_deref, DW_CFA_expression,
	       RIP, 3, DW_OP_breg7, 0xa8, 1, DW_CFA_expression, RBP, 3, DW_OP_breg7, 0xf8, 0),
	  .rows = { ROW(0, .cfa = HT_CFA_SIGNAL) } },
	{ "signal frame of another shape", .aug = "zRS",
	  INSN(DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0xa0, 1, DW_OP_deref, DW_CFA_expression,
	       RIP, 3, DW_OP_breg7, 0xb8, 1, DW_CFA_expression, RBP, 3, DW_OP_breg7, 0xf8, 0),
	  .rows = { UNSUPPORTED_ROW(0) } },
	{ "advance past the end", INSN(DW_CFA_advance_loc2, 0xff, 0xff, DW_CFA_def_cfa_offset, 16),
	  .rows = { RSP_ROW(0, 1) } },
	{ "unknown operation", .bad_fde_cnt = 1,
	  INSN(ADVANCE(4), DW_CFA_def_cfa_offset, 16, 0x3b, 1),
	  .rows = { RSP_ROW(0, 1), UNSUPPORTED_ROW(4) } },
	{ "restore without remember", .bad_fde_cnt = 1, INSN(ADVANCE(4), DW_CFA_restore_state),
	  .rows = { RSP_ROW(0, 1), UNSUPPORTED_ROW(4) } },
	{ "remember without end", .bad_fde_cnt = 1,
	  INSN(10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10),
	  .rows = { UNSUPPORTED_ROW(0) } },
	{ "operand cut off", .bad_fde_cnt = 1, INSN(ADVANCE(4), DW_CFA_def_cfa, RSP, 0x80),
	  .rows = { RSP_ROW(0, 1), UNSUPPORTED_ROW(4) } },
	{ "number without end", .bad_fde_cnt = 1,
	  INSN(DW_CFA_def_cfa_offset, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	       0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
	  .rows = { UNSUPPORTED_ROW(0) } },
	{ "expression longer than the program", .bad_fde_cnt = 1,
	  INSN(DW_CFA_def_cfa_expression, 100, DW_OP_breg7), .rows = { UNSUPPORTED_ROW(0) } },
	{ "offset of a CFA that has none", .bad_fde_cnt = 1,
	  INSN(DW_CFA_def_cfa_expression, 1, DW_OP_lit0, DW_CFA_def_cfa_offset, 8),
	  .rows = { UNSUPPORTED_ROW(0) } },
};

static void check_rows(const struct unwind_table *t, uint64_t pc, uint64_t bytes,
		       const struct expected_row *rows)
{
	static const struct ht_row none = { .cfa = HT_CFA_NONE };
	size_t i = 0;
	uint64_t at;

	assert_row(t, pc - 1, &none);
	for (at = 0; at < bytes; at++) {
		while (i + 1 < ROWS_CAP && rows[i + 1].at && at >= rows[i + 1].at)
			i++;
		assert_row(t, pc + at, &rows[i].row);
	}
	assert_row(t, pc + bytes, &none);
}

TEST(test_programs)
{
	const uint64_t pc = TEXT_VADDR + 0x1234, bytes = 0x100;

	each_case(pcase, program_cases) {
		struct cie_spec spec = { pcase->aug ? pcase->aug : "zR", 1,
					 DW_EH_PE_pcrel | DW_EH_PE_sdata4, 1 };
		struct unwind_table *t = NULL;
		struct elf_file *ef;
		struct image im;

		print_message("# %s\n", pcase->name);
		image_init(&im);
		put_fde(&im, &spec, put_cie(&im, &spec, false), false, pc, bytes, pcase->insn,
			pcase->insn_bytes);
		ef = image_open(&im, ".eh_frame", 0);
		assert_int_equal(unwind_table_build(ef, NULL, &t), 0);
		elf_file_close(ef);
		assert_sound(t);
		assert_int_equal(t->fde_cnt, 1);
		assert_int_equal(t->bad_fde_cnt, pcase->bad_fde_cnt);
		check_rows(t, pc, bytes, pcase->rows);
		unwind_table_free(t);
	}
}

struct encoding_case {
	const char *name;
	struct cie_spec spec;
	bool is_debug_frame, is_bad;
};

static const struct encoding_case encoding_cases[] = {
	{ "absolute, no augmentation", { "", 1, 0, 1 }, false, false },
	{ "absolute", { "zR", 1, DW_EH_PE_absptr, 1 }, false, false },
	{ "pcrel 4", { "zR", 1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, 1 }, false, false },
	{ "pcrel 8", { "zR", 1, DW_EH_PE_pcrel | DW_EH_PE_sdata8, 1 }, false, false },
	{ "absolute 4", { "zR", 1, DW_EH_PE_udata4, 1 }, false, false },
	{ "version 3", { "zR", 3, DW_EH_PE_pcrel | DW_EH_PE_sdata4, 1 }, false, false },
	{ "C++", { "zPLR", 1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, 1 }, false, false },
	{ "gcc 2", { "eh", 1, DW_EH_PE_absptr, 1 }, false, false },
	{ "code alignment", { "zR", 1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, 4 }, false, false },
	{ "debug_frame 1", { "", 1, 0, 1 }, true, false },
	{ "debug_frame 3", { "", 3, 0, 1 }, true, false },
	{ "debug_frame 4", { "", 4, 0, 1 }, true, false },
	{ "indirect", { "zR", 1, DW_EH_PE_indirect | DW_EH_PE_sdata8, 1 }, false, true },
	{ "textrel", { "zR", 1, DW_EH_PE_textrel | DW_EH_PE_sdata8, 1 }, false, true },
	{ "unknown format", { "zR", 1, 0x05, 1 }, false, true },
	{ "unknown version", { "zR", 7, DW_EH_PE_absptr, 1 }, false, true },
	{ "unknown augmentation", { "zXR", 1, DW_EH_PE_absptr, 1 }, false, true },
	{ "unknown augmentation without size", { "X", 1, DW_EH_PE_absptr, 1 }, false, true },
	{ "long augmentation", { "zRRRRRRRRRRRRRRRRRRRRRRRRRRRRR", 1, 0, 1 }, false, true },
};

TEST(test_encodings)
{
	static const uint8_t insn[] = { ADVANCE(4), DW_CFA_def_cfa_offset, 16 };
	const uint64_t pc = TEXT_VADDR + 0x1234, bytes = 0x100;

	each_case(c, encoding_cases) {
		struct expected_row rows[ROWS_CAP] = { RSP_ROW(0, 1),
						       RSP_ROW(4 * c->spec.code_align, 2) };
		struct unwind_table *t = NULL;
		struct elf_file *ef;
		struct image im;
		int err;

		print_message("# %s\n", c->name);
		image_init(&im);
		put_fde(&im, &c->spec, put_cie(&im, &c->spec, c->is_debug_frame), c->is_debug_frame,
			pc, bytes, insn, sizeof(insn));
		ef = image_open(&im, c->is_debug_frame ? ".debug_frame" : ".eh_frame", 0);
		err = unwind_table_build(ef, NULL, &t);
		elf_file_close(ef);
		assert_int_equal(err, c->is_bad ? -ENOENT : 0);
		if (!err) {
			assert_sound(t);
			check_rows(t, pc, bytes, rows);
		}
		unwind_table_free(t);
	}
}

struct span {
	uint64_t pc, bytes;
	uint8_t cfa_bytes;
};

static struct unwind_table *build_spans(const struct span *span, size_t cnt, uint64_t entry)
{
	static const struct cie_spec spec = { "zR", 1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, 1 };
	struct unwind_table *t = NULL;
	struct elf_file *ef;
	struct image im;
	size_t cie_off, i;

	image_init(&im);
	cie_off = put_cie(&im, &spec, false);
	for (i = 0; i < cnt; i++) {
		const uint8_t insn[] = { DW_CFA_def_cfa_offset, span[i].cfa_bytes };

		put_fde(&im, &spec, cie_off, false, span[i].pc, span[i].bytes, insn, sizeof(insn));
	}
	put_u(&im, 0, 4);
	ef = image_open(&im, ".eh_frame", entry);
	assert_int_equal(unwind_table_build(ef, NULL, &t), 0);
	elf_file_close(ef);
	assert_sound(t);
	return t;
}

static void assert_cfa(const struct unwind_table *t, uint64_t vaddr, int cfa, int off)
{
	const struct ht_row *row = find_row(t, vaddr);

	assert_int_equal(row ? row->cfa : HT_CFA_NONE, cfa);
	assert_int_equal(row ? row->cfa_off : 0, off);
}

/* Pages, gaps, order: not one row more than needed. */
TEST(test_pages)
{
	const uint64_t t0 = TEXT_VADDR;
	const struct span spans[] = {
		{ t0 + 0x90000, 0x10, 32 }, /* after two pages of nothing, and out of order */
		{ t0 + 0x100, 0x100, 8 },
		{ t0 + 0x200, 0x100, 8 }, /* say the same: one row */
		{ t0 + 0x400, 0x4fc00, 16 }, /* over five pages */
		{ t0 + 0x50000, 0x10000, 24 }, /* exactly a page */
		{ t0 + 0x50010, 0x10, 40 }, /* inside of another one: the first one stays */
		{ t0 + 0xff000, 0x5000, 48 }, /* beyond the segment: cut */
		{ 0x10, 0x10, 8 }, /* not in the text */
	};
	struct unwind_table *t;

	t = build_spans(spans, sizeof(spans) / sizeof(spans[0]), 0);
	assert_int_equal(t->first_page, t0 >> 16);
	assert_int_equal(t->page_cnt, 16);
	assert_int_equal(t->bad_fde_cnt, 2);
	assert_cfa(t, 0, HT_CFA_NONE, 0);
	assert_cfa(t, ~0ULL, HT_CFA_NONE, 0);
	assert_cfa(t, t0, HT_CFA_NONE, 0);
	assert_cfa(t, t0 + 0x100, HT_CFA_RSP, 1);
	assert_cfa(t, t0 + 0x2ff, HT_CFA_RSP, 1);
	assert_cfa(t, t0 + 0x300, HT_CFA_NONE, 0);
	assert_cfa(t, t0 + 0x400, HT_CFA_RSP, 2);
	assert_cfa(t, t0 + 0x4ffff, HT_CFA_RSP, 2);
	assert_cfa(t, t0 + 0x50018, HT_CFA_RSP, 3);
	assert_cfa(t, t0 + 0x5ffff, HT_CFA_RSP, 3);
	assert_cfa(t, t0 + 0x60000, HT_CFA_NONE, 0);
	assert_cfa(t, t0 + 0x8ffff, HT_CFA_NONE, 0);
	assert_cfa(t, t0 + 0x90008, HT_CFA_RSP, 4);
	assert_cfa(t, t0 + 0x90010, HT_CFA_NONE, 0);
	assert_cfa(t, t0 + 0xfffff, HT_CFA_RSP, 6);
	assert_cfa(t, t0 + 0x100000, HT_CFA_NONE, 0);
	/* page 0: NONE, 1, NONE, 2; 1 to 4: 2; 5: 3; 6: NONE; 9: 4, NONE; 15: NONE, 6 */
	assert_int_equal(t->pages[0].row_cnt, 4);
	assert_int_equal(t->pages[4].row_cnt, 1);
	assert_int_equal(t->pages[5].row_cnt, 1);
	assert_int_equal(t->pages[6].row_cnt, 1);
	assert_int_equal(t->pages[7].row_cnt, 0);
	assert_int_equal(t->pages[8].row_cnt, 0);
	assert_int_equal(t->pages[9].row_cnt, 2);
	assert_int_equal(t->pages[15].row_cnt, 2);
	assert_int_equal(t->row_cnt, 4 + 4 + 1 + 1 + 2 + 2);
	unwind_table_free(t);
}

/* Code without frame information at the entry point is where the first thread starts. */
TEST(test_entry)
{
	const uint64_t t0 = TEXT_VADDR;
	const struct span spans[] = { { t0 + 0x100, 0x100, 8 }, { t0 + 0x240, 0x10, 16 } };
	struct unwind_table *t;

	t = build_spans(spans, 2, t0 + 0x210);
	assert_cfa(t, t0 + 0x20f, HT_CFA_NONE, 0);
	assert_cfa(t, t0 + 0x210, HT_CFA_END, 0);
	assert_cfa(t, t0 + 0x23f, HT_CFA_END, 0);
	assert_cfa(t, t0 + 0x240, HT_CFA_RSP, 2);
	unwind_table_free(t);
	t = build_spans(spans, 2, t0 + 0x300);
	assert_cfa(t, t0 + 0x33f, HT_CFA_END, 0);
	assert_cfa(t, t0 + 0x340, HT_CFA_NONE, 0);
	unwind_table_free(t);
	t = build_spans(spans, 2, t0 + 0x110);
	assert_cfa(t, t0 + 0x110, HT_CFA_RSP, 1);
	unwind_table_free(t);
}

/* The search against a plain scan, for every size of a page around powers of two. */
TEST(test_find)
{
	static struct ht_row rows[300];
	struct unwind_page page = { 0, 0 };
	struct unwind_table t = { .first_page = 7, .page_cnt = 1, .pages = &page, .rows = rows };
	uint32_t cnt, i, lo;

	srandom(1);
	for (cnt = 1; cnt <= 300; cnt++) {
		rows[0].pc_lo = 0;
		for (i = 1; i < cnt; i++)
			rows[i].pc_lo = (uint16_t)(rows[i - 1].pc_lo + 1 + random() % 200);
		page.row_cnt = cnt;
		for (lo = 0; lo < 0x10000; lo += 1 + (uint32_t)random() % 40) {
			for (i = cnt - 1; rows[i].pc_lo > lo; i--)
				;
			assert_ptr_equal(find_row(&t, 7 << 16 | lo), &rows[i]);
		}
		assert_ptr_equal(find_row(&t, 7 << 16 | 0xffff), &rows[cnt - 1]);
	}
	assert_null(find_row(&t, 6 << 16));
	assert_null(find_row(&t, 8 << 16));
}

/* Every prefix of a good section, and every byte of it changed: no crash, sound tables. */
TEST(test_damage)
{
	static const struct cie_spec spec = { "zPLR", 1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, 1 };
	static const uint8_t insn[] = { ADVANCE(1),
					DW_CFA_def_cfa_offset,
					16,
					DW_CFA_remember_state,
					DW_CFA_advance_loc2,
					0x34,
					0x12,
					PLT_EXPR(DW_OP_lit11),
					DW_CFA_advance_loc4,
					0,
					0,
					2,
					0,
					DW_CFA_restore_state };
	struct image good, im;
	size_t at;
	int how;

	image_init(&good);
	put_fde(&good, &spec, put_cie(&good, &spec, false), false, TEXT_VADDR, 0x50000, insn,
		sizeof(insn));
	for (at = FRAME_OFF; at < good.cnt; at++) {
		for (how = 0; how < 6; how++) {
			static const uint8_t patterns[] = { 0, 0xff, 0x80, 0x7f, 1 };
			struct unwind_table *t = NULL;
			struct elf_file *ef;

			im = good;
			if (how < 5)
				im.bytes[at] = patterns[how];
			else
				im.cnt = at;
			ef = image_open(&im, ".eh_frame", 0);
			if (!unwind_table_build(ef, NULL, &t))
				assert_sound(t);
			elf_file_close(ef);
			unwind_table_free(t);
		}
	}
}

RUN_TESTS()
