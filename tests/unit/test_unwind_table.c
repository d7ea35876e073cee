/* SPDX-License-Identifier: MIT */
/*
 * test_unwind_table.c - unwind tables of the machine's own libraries against libdw.
 *
 *   test_unwind_table [FILE...]
 *
 * Without arguments a list of files that were made by different compilers and linkers, as far as
 * they are installed. For random addresses of each one, libdw evaluates the frame information
 * from scratch; what it says is written down as a row by code that shares nothing with
 * unwind_rule.c, and must be what the table says. An address for which a table has nothing must
 * be one for which libdw has nothing either.
 */
#include "unit.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <libelf.h>
#include <sys/auxv.h>

#include "../lib/find_row.h"
#include "elf/elf_file.h"
#include "elf/unwind_table.h"

static const struct unwind_options described = { .described_only = true };

#define PROBES 5000
/* A list of everything that is installed is given on the command line; it need not be slow. */
#define PROBES_OF_ARGS 1000

static char **arg_files;
static int arg_file_cnt;

static const char *const default_files[] = {
	"/lib/x86_64-linux-gnu/libc.so.6",
	"/lib64/ld-linux-x86-64.so.2",
	"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
	"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
	"/usr/lib/x86_64-linux-gnu/libgcc_s.so.1",
	"/usr/lib/x86_64-linux-gnu/libm.so.6",
	"/usr/lib/x86_64-linux-gnu/libz3.so.4",
	"/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
	"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
	"/lib/ld-musl-x86_64.so.1",
	"/usr/bin/python3.11",
	"/usr/bin/redis-server",
	"/usr/bin/bash",
	"/proc/self/exe",
};

struct tally {
	unsigned int covered, uncovered, unsupported, end, signal, plt, deref;
};

static int16_t units(int64_t off)
{
	return (int16_t)(off / 8);
}

static bool fits(int64_t off)
{
	return off % 8 == 0 && off >= -262144 && off <= 262136;
}

/* libdw gives expressions as arrays of operations. */
static bool is_plt(const Dwarf_Op *op, size_t cnt)
{
	return cnt == 9 && op[0].atom == DW_OP_breg7 && op[0].number == 8 &&
	       op[1].atom == DW_OP_breg16 && op[1].number == 0 && op[2].atom == DW_OP_lit15 &&
	       op[3].atom == DW_OP_and && op[4].atom >= DW_OP_lit0 && op[4].atom <= DW_OP_lit15 &&
	       op[5].atom == DW_OP_ge && op[6].atom == DW_OP_lit3 && op[7].atom == DW_OP_shl &&
	       op[8].atom == DW_OP_plus;
}

/* One operation that is a register plus an offset. */
static bool is_breg(const Dwarf_Op *op, unsigned int *ret_reg, int64_t *ret_off)
{
	if (op->atom == DW_OP_bregx) {
		*ret_reg = (unsigned int)op->number;
		*ret_off = (int64_t)op->number2;
		return true;
	}
	*ret_reg = op->atom - DW_OP_breg0;
	*ret_off = (int64_t)op->number;
	return op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31;
}

static bool cfa_of(Dwarf_Frame *frame, struct ht_row *ret)
{
	unsigned int reg;
	Dwarf_Op *op;
	int64_t off;
	size_t cnt;

	if (dwarf_frame_cfa(frame, &op, &cnt) || !cnt)
		return false;
	if (is_plt(op, cnt)) {
		ret->cfa = HT_CFA_PLT;
		ret->cfa_off = op[4].atom - DW_OP_lit0;
		return true;
	}
	if (cnt > 2 || !is_breg(&op[0], &reg, &off) || (reg != 6 && reg != 7))
		return false;
	if (cnt == 2 && op[1].atom != DW_OP_deref)
		return false;
	if (cnt == 1 && reg == 7 && off > 262136 && off < 8 << 24 && off % 8 == 0) {
		ret->cfa = HT_CFA_RSP_WIDE;
		ret->cfa_off = (int16_t)(uint16_t)(off >> 3);
		ret->rbp_off = (int16_t)(off >> 19 << 8);
		return true;
	}
	if (!fits(off))
		return false;
	if (cnt == 2)
		ret->cfa = reg == 7 ? HT_CFA_DEREF_RSP : HT_CFA_DEREF_RBP;
	else
		ret->cfa = reg == 7 ? HT_CFA_RSP : HT_CFA_RBP;
	ret->cfa_off = units(off);
	return true;
}

enum place { PLACE_SAME, PLACE_UNDEFINED, PLACE_AT_CFA, PLACE_AT_RBP, PLACE_AT_RSP, PLACE_OTHER };

static enum place register_place(Dwarf_Frame *frame, int regno, int64_t *ret_off)
{
	unsigned int reg;
	Dwarf_Op mem[3], *op;
	size_t cnt;

	*ret_off = 0;
	assert_int_equal(dwarf_frame_register(frame, regno, mem, &op, &cnt), 0);
	if (!cnt)
		return op ? PLACE_UNDEFINED : PLACE_SAME;
	if (op[0].atom == DW_OP_call_frame_cfa) {
		if (cnt == 1)
			return PLACE_AT_CFA;
		*ret_off = (int64_t)op[1].number;
		if (cnt == 2 && op[1].atom == DW_OP_plus_uconst)
			return PLACE_AT_CFA;
		/* DW_CFA_expression begins with the CFA on the stack, which breg does not use */
		if (cnt != 2 || !is_breg(&op[1], &reg, ret_off))
			return PLACE_OTHER;
	} else if (cnt != 1 || !is_breg(&op[0], &reg, ret_off)) {
		return PLACE_OTHER;
	}
	if (reg == 6)
		return PLACE_AT_RBP;
	return reg == 7 ? PLACE_AT_RSP : PLACE_OTHER;
}

static bool is_sigreturn(Dwarf_Frame *frame, const struct ht_row *cfa)
{
	int64_t rip, rbp;

	return register_place(frame, 16, &rip) == PLACE_AT_RSP && rip == 168 &&
	       register_place(frame, 6, &rbp) == PLACE_AT_RSP && rbp == 120 &&
	       cfa->cfa == HT_CFA_DEREF_RSP && cfa->cfa_off == 20;
}

/* The row that libdw's view of pc amounts to. */
static struct ht_row reference(Dwarf_Frame *frame)
{
	static const struct ht_row unsupported = { .cfa = HT_CFA_UNSUPPORTED };
	struct ht_row ret = { 0 };
	bool is_signal, is_cfa;
	enum place rbp;
	int64_t off;

	assert_int_equal(dwarf_frame_info(frame, NULL, NULL, &is_signal), 16);
	if (register_place(frame, 16, &off) == PLACE_UNDEFINED)
		return (struct ht_row){ .cfa = HT_CFA_END };
	is_cfa = cfa_of(frame, &ret);
	if (is_signal && is_cfa && is_sigreturn(frame, &ret))
		return (struct ht_row){ .cfa = HT_CFA_SIGNAL };
	if (!is_cfa || register_place(frame, 16, &off) != PLACE_AT_CFA || off != -8)
		return unsupported;
	rbp = register_place(frame, 6, &off);
	if (rbp == PLACE_SAME) {
		ret.rbp = HT_RBP_SAME;
	} else if ((rbp == PLACE_AT_CFA || rbp == PLACE_AT_RBP) && fits(off)) {
		ret.rbp = rbp == PLACE_AT_CFA ? HT_RBP_AT_CFA : HT_RBP_AT_RBP;
		if (ret.cfa != HT_CFA_RSP_WIDE)
			ret.rbp_off = units(off);
		else if (off >= -1024 && off < 1024)
			ret.rbp_off |= (uint8_t)(off / 8);
		else
			ret.rbp = HT_RBP_UNDEFINED;
	} else {
		ret.rbp = HT_RBP_UNDEFINED;
	}
	return ret;
}

static void count(struct tally *n, const struct ht_row *row)
{
	n->covered++;
	n->unsupported += row->cfa == HT_CFA_UNSUPPORTED;
	n->end += row->cfa == HT_CFA_END;
	n->signal += row->cfa == HT_CFA_SIGNAL;
	n->plt += row->cfa == HT_CFA_PLT;
	n->deref += row->cfa == HT_CFA_DEREF_RBP || row->cfa == HT_CFA_DEREF_RSP;
}

static void compare_at(const char *path, const struct unwind_table *t, Dwarf_CFI *eh,
		       Dwarf_CFI *debug, uint64_t pc, struct tally *n)
{
	const struct ht_row *row = find_row(t, pc);
	Dwarf_Frame *frame = NULL;
	struct ht_row want;

	if ((!eh || dwarf_cfi_addrframe(eh, pc, &frame)) &&
	    (!debug || dwarf_cfi_addrframe(debug, pc, &frame))) {
		/*
		 * HT_CFA_END without an FDE: the entry point. HT_CFA_UNSUPPORTED: a damaged program.
		 * And libdw 0.188 misses functions of a .debug_frame (Go's) that it also lists.
		 */
		if (row && row->cfa != HT_CFA_NONE && row->cfa != HT_CFA_END &&
		    row->cfa != HT_CFA_UNSUPPORTED && !debug)
			fail_msg("%s: %#lx: row kind %u, libdw has nothing", path, pc, row->cfa);
		n->uncovered++;
		return;
	}
	want = reference(frame);
	free(frame);
	if (!row)
		fail_msg("%s: %#lx: no row, libdw has kind %u", path, pc, want.cfa);
	if (row->cfa != want.cfa || row->cfa_off != want.cfa_off || row->rbp != want.rbp ||
	    row->rbp_off != want.rbp_off)
		fail_msg("%s: %#lx: row says %u%+d rbp %u%+d, libdw %u%+d rbp %u%+d", path, pc,
			 row->cfa, row->cfa_off, row->rbp, row->rbp_off, want.cfa, want.cfa_off,
			 want.rbp, want.rbp_off);
	count(n, row);
}

/* Rows are where something changes: look on both sides of them, and anywhere in between. */
static uint64_t random_pc(const struct unwind_table *t)
{
	uint32_t page = (uint32_t)random() % t->page_cnt;
	const struct unwind_page *p = &t->pages[page];
	uint64_t base = (t->first_page + page) << HT_PAGE_SHIFT;

	if (!p->row_cnt || random() % 4 == 0)
		return base + (uint64_t)random() % 0x10000;
	return base + t->rows[p->first + (uint32_t)random() % p->row_cnt].pc_lo - random() % 2;
}

/* Single rows that random addresses would miss: all kinds but the usual ones are looked at. */
static void compare_rare(const char *path, const struct unwind_table *t, Dwarf_CFI *eh,
			 Dwarf_CFI *debug, struct tally *n)
{
	uint32_t i, j;

	for (i = 0; i < t->page_cnt; i++) {
		for (j = 0; j < t->pages[i].row_cnt; j++) {
			const struct ht_row *row = &t->rows[t->pages[i].first + j];

			if (row->cfa > HT_CFA_RBP)
				compare_at(path, t, eh, debug,
					   ((t->first_page + i) << HT_PAGE_SHIFT) + row->pc_lo, n);
		}
	}
}

static void compare_file(const char *path, unsigned int probes)
{
	struct unwind_table *t = NULL;
	struct elf_file *ef = NULL;
	struct tally n = { 0 };
	Dwarf_CFI *eh, *debug;
	Dwarf *dwarf;
	unsigned int i;
	Elf *elf;
	int fd, err;

	if (elf_file_open(path, &ef))
		return;
	err = unwind_table_build(ef, &described, &t);
	elf_file_close(ef);
	if (err) {
		print_message("# %s: %s\n", path, strerror(-err));
		return;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	assert_non_null(elf);
	eh = dwarf_getcfi_elf(elf);
	dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	debug = dwarf ? dwarf_getcfi(dwarf) : NULL;
	assert_true(eh || debug);
	for (i = 0; i < probes; i++)
		compare_at(path, t, eh, debug, random_pc(t), &n);
	compare_rare(path, t, eh, debug, &n);
	print_message(
		"# %s: rows %u, functions %u (%u bad): compared %u, end %u, signal %u, plt %u, "
		"deref %u, unsupported %u, nothing there %u\n",
		path, t->row_cnt, t->fde_cnt, t->bad_fde_cnt, n.covered, n.end, n.signal, n.plt,
		n.deref, n.unsupported, n.uncovered);
	assert_true(n.covered > 0);
	dwarf_cfi_end(eh);
	dwarf_end(dwarf);
	elf_end(elf);
	close(fd);
	unwind_table_free(t);
}

TEST(test_against_libdw)
{
	int arg;

	elf_version(EV_CURRENT);
	srandom(1);
	for (arg = 0; arg < arg_file_cnt; arg++)
		compare_file(arg_files[arg], PROBES_OF_ARGS);
	if (arg_file_cnt)
		return;
	each_case(c, default_files)
		compare_file(*c, PROBES);
}

static void assert_same_table(const struct unwind_table *a, const struct unwind_table *b)
{
	assert_int_equal(a->first_page, b->first_page);
	assert_int_equal(a->page_cnt, b->page_cnt);
	assert_int_equal(a->row_cnt, b->row_cnt);
	assert_int_equal(a->fde_cnt, b->fde_cnt);
	assert_memory_equal(a->pages, b->pages, a->page_cnt * sizeof(*a->pages));
	assert_memory_equal(a->rows, b->rows, a->row_cnt * sizeof(*a->rows));
}

/* Marks change nothing but the flag, and are exact to the byte. */
TEST(test_marks)
{
	struct unwind_table *plain = NULL, *t = NULL;
	struct elf_file *ef = NULL;
	struct unwind_mark mark[5];
	uint64_t base, end, pc;
	int i;

	assert_int_equal(elf_file_open("/proc/self/exe", &ef), 0);
	assert_int_equal(unwind_table_build(ef, NULL, &plain), 0);
	base = plain->first_page << HT_PAGE_SHIFT;
	end = base + ((uint64_t)plain->page_cnt << HT_PAGE_SHIFT);
	assert_true(end - base > 0x21000);
	mark[0] = (struct unwind_mark){ base + 0x20ff3, base + 0x21005, HT_ROW_ALLOC };
	mark[1] = (struct unwind_mark){ base + 0x8001, base + 0x8002, HT_ROW_THROWS };
	mark[2] =
		(struct unwind_mark){ base + 0x21000, base + 0x21007, HT_ROW_ALLOC }; /* overlaps */
	mark[3] =
		(struct unwind_mark){ base + 0xfff8, base + 0x10010, HT_ROW_ALLOC }; /* two pages */
	mark[4] = (struct unwind_mark){ base + 0x8002, base + 0x8100, HT_ROW_ALLOC }; /* touches */
	assert_int_equal(unwind_table_build(
				 ef, &(struct unwind_options){ .marks = mark, .mark_cnt = 5 }, &t),
			 0);
	for (pc = base; pc < end; pc++) {
		const struct ht_row *row = find_row(t, pc), *want = find_row(plain, pc);
		uint8_t bits = 0;

		for (i = 0; i < 5; i++)
			if (pc >= mark[i].start_vaddr && pc < mark[i].end_vaddr)
				bits |= mark[i].bits;
		if (!want || want->cfa == HT_CFA_NONE) {
			assert_true(!row || row->cfa == HT_CFA_NONE);
			continue;
		}
		if (!row || row->cfa != want->cfa || row->cfa_off != want->cfa_off ||
		    row->rbp_off != want->rbp_off || row->rbp != (want->rbp | bits))
			fail_msg("%#lx: row %u %#x, must be %u %#x", pc, row ? row->cfa : 0,
				 row ? row->rbp : 0, want->cfa, want->rbp | bits);
	}
	unwind_table_free(plain);
	unwind_table_free(t);
	elf_file_close(ef);
}

/* Without section headers (sstrip) everything is found through PT_GNU_EH_FRAME. */
TEST(test_without_sections)
{
	struct unwind_table *with = NULL, *without = NULL;
	struct elf_file *ef = NULL, *stripped = NULL;
	Elf64_Ehdr *eh;
	size_t bytes;
	uint8_t *copy;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_int_equal(elf_file_open_fd(fd, &ef), 0);
	bytes = (size_t)lseek(fd, 0, SEEK_END);
	copy = malloc(bytes);
	assert_non_null(copy);
	assert_int_equal(pread(fd, copy, bytes, 0), bytes);
	close(fd);
	eh = (Elf64_Ehdr *)copy;
	eh->e_shoff = 0;
	eh->e_shnum = eh->e_shstrndx = 0;
	assert_int_equal(elf_file_open_mem(copy, bytes, &stripped), 0);
	free(copy);
	assert_int_equal(unwind_table_build(ef, NULL, &with), 0);
	assert_int_equal(unwind_table_build(stripped, NULL, &without), 0);
	assert_same_table(with, without);
	unwind_table_free(with);
	unwind_table_free(without);
	elf_file_close(ef);
	elf_file_close(stripped);
}

/* The vDSO is an image in memory: two pages of it are always there. */
TEST(test_vdso)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	struct unwind_table *t = NULL;
	struct elf_file *ef = NULL;

	if (!image)
		skip();
	assert_int_equal(elf_file_open_mem(image, 4096, &ef), 0);
	assert_int_equal(unwind_table_build(ef, &described, &t), 0);
	assert_int_equal(t->bad_fde_cnt, 0);
	assert_true(t->row_cnt > 2);
	print_message("# vDSO: functions %u, rows %u, unsupported %u\n", t->fde_cnt, t->row_cnt,
		      t->unsupported_row_cnt);
	unwind_table_free(t);
	elf_file_close(ef);
}

int main(int argc, char **argv)
{
	arg_files = argv + 1;
	arg_file_cnt = argc - 1;
	return unit_main(__FILE__, NULL, NULL);
}
