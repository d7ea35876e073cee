/* SPDX-License-Identifier: MIT */
/*
 * unwind_table.c - compiles .eh_frame (or .debug_frame) into the rows by which BPF unwinds a stack.
 *
 * 1. All FDEs are listed in file order (32 bytes each, without their programs). .debug_frame fills the gaps of .eh_frame:
 *    hand-written assembly with `.cfi_sections .debug_frame`, Go functions in a cgo program.
 * 2. The list is sorted by pc, unless it is sorted already, as in libraries linked by ld.
 * 3. The programs run in this order, and their rows are appended to the table. A row equal to the one before is dropped. A
 *    gap between two functions becomes a row HT_CFA_NONE. Every page that has rows begins with one that repeats the state at
 *    its start.
 *
 * Time and memory are linear in the size of the section, plus one row for each page of text. Of overlapping functions
 * (only a damaged file has them) the first one counts. If a file makes more work than that (elf_budget.h), its table
 * ends there.
 *
 * The entry point of a program is the start of its first thread, but _start of musl and of the loader has no frame
 * information that says so. If no FDE covers it, it gets a row HT_CFA_END.
 *
 * Rows of code that the caller has marked (functions that allocate) carry the mark; a new row begins at each end of a
 * mark.
 *
 * Code between functions is read instruction by instruction (unwind_scan.c), up to a limit: musl, start files,
 * assembly.
 *
 * Not done: DWARF expressions other than the shapes in unwind_rule.c; .debug_frame in a separate debug file;
 * relocatable files.
 */
#include "elf/unwind_table.h"

#include <dwarf.h>
#include <elf.h>

#include "base/vec.h"
#include "elf/elf_file.h"
#include "elf/unwind_table_priv.h"

#define PAGE_BYTES (1ULL << HT_PAGE_SHIFT)
/* Most bytes of a _start without CFI (of libc), from the entry point on. */
#define ENTRY_BYTES 64
/* Shorter gaps are padding, which has up to 63 bytes in code that is aligned to cache lines. */
#define GAP_BYTES_MIN 64
/* Gaps of less than this in total are odds and ends of the linker: symbols are not needed. */
#define GAPS_BYTES_FEW 16384
/* Bytes without frame information that are scanned per file: 0.3 s. */
#define GAPS_BYTES_CAP (2U << 20)

enum { EH_FRAME, DEBUG_FRAME, SECTION_CNT };
/* Functions without an FDE: the code at the entry point, and gaps between functions. */
#define ENTRY SECTION_CNT
#define GAP (SECTION_CNT + 1)

struct function {
	uint64_t pc, pc_end;
	size_t off; /* of the FDE */
	uint32_t section; /* EH_FRAME, DEBUG_FRAME, ENTRY or GAP */
};

struct builder {
	struct elf_file *ef;
	const struct unwind_arch *arch;
	struct cfi_reader reader[SECTION_CNT];
	VEC(struct function) functions;
	VEC(struct ht_row) rows;
	struct unwind_table *table;
	/* index in table->pages of the page that rows are being added to */
	uint32_t page;
	/* the row in force at the end of what was added; its pc_lo means nothing */
	struct ht_row last;
	bool is_signal; /* of the function whose program is running */
	bool with_gaps;
	struct unwind_scanner *scanner; /* NULL: none for this machine or file */
	uint64_t *entries;
	size_t entry_cnt;
	VEC(struct unwind_mark) marks; /* sorted, none overlaps another */
	size_t mark_edge; /* number of starts and ends of marks that were passed */
};

static bool row_says_same(const struct ht_row *a, const struct ht_row *b)
{
	return a->cfa == b->cfa && a->rbp == b->rbp && a->cfa_off == b->cfa_off &&
	       a->rbp_off == b->rbp_off;
}

static int row_append(struct builder *b, uint16_t pc_lo, struct ht_row row)
{
	struct unwind_page *page = &b->table->pages[b->page];

	if (b->rows.cnt >= UINT32_MAX)
		return -EFBIG;
	if (!page->row_cnt)
		page->first = (uint32_t)b->rows.cnt;
	page->row_cnt++;
	if (row.cfa == HT_CFA_UNSUPPORTED)
		b->table->unsupported_row_cnt++;
	row.pc_lo = pc_lo;
	return vec_push(&b->rows, row);
}

/* Finish the pages before that of vaddr, and begin that page. */
static int page_advance(struct builder *b, uint64_t vaddr)
{
	uint32_t page = (uint32_t)((vaddr >> HT_PAGE_SHIFT) - b->table->first_page);
	int err;

	while (b->page < page) {
		b->page++;
		if (b->last.cfa == HT_CFA_NONE || (b->page == page && !(vaddr % PAGE_BYTES)))
			continue;
		err = row_append(b, 0, b->last);
		if (err)
			return err;
	}
	return 0;
}

static int row_add(struct builder *b, uint64_t vaddr, struct ht_row row)
{
	uint16_t pc_lo = (uint16_t)(vaddr % PAGE_BYTES);
	int err;

	if (row_says_same(&b->last, &row))
		return 0;
	err = page_advance(b, vaddr);
	if (!err && !b->table->pages[b->page].row_cnt && pc_lo)
		err = row_append(b, 0, b->last);
	if (!err)
		err = row_append(b, pc_lo, row);
	b->last = row;
	return err;
}

/* The next start or end of a mark; UINT64_MAX: there are no more. */
static uint64_t mark_edge(const struct builder *b)
{
	const struct unwind_mark *mark;

	if (b->mark_edge == 2 * b->marks.cnt)
		return UINT64_MAX;
	mark = &b->marks.data[b->mark_edge / 2];
	return b->mark_edge % 2 ? mark->end_vaddr : mark->start_vaddr;
}

static struct ht_row marked(const struct builder *b, struct ht_row row)
{
	row.rbp &= HT_RBP_MASK;
	if (b->mark_edge % 2)
		row.rbp |= b->marks.data[b->mark_edge / 2].bits;
	return row;
}

/* From vaddr on, row is in force. vaddr must never go back, and must lie in a page of the table. */
static int row_put(struct builder *b, uint64_t vaddr, struct ht_row row)
{
	int err = 0;

	while (mark_edge(b) <= vaddr && !err) {
		uint64_t edge = mark_edge(b);

		b->mark_edge++;
		if (edge >> HT_PAGE_SHIFT >= b->table->first_page && edge < vaddr &&
		    edge < mark_edge(b))
			err = row_add(b, edge, marked(b, b->last));
	}
	return err ? err : row_add(b, vaddr, marked(b, row));
}

/* The executable segment that pc lies in, or NULL. */
static const struct elf_segment *text_of(const struct elf_file *ef, uint64_t pc)
{
	const struct elf_segment *seg = elf_file_segment_at(ef, pc);

	return seg && seg->is_exec ? seg : NULL;
}

static int function_add(struct builder *b, uint32_t section, const struct cfi_fde *fde)
{
	const struct elf_segment *text = text_of(b->ef, fde->pc);
	struct function f = {
		.pc = fde->pc,
		.pc_end = fde->pc_end,
		.off = fde->off,
		.section = section,
	};

	if (f.pc == f.pc_end)
		return 0;
	if (!text) {
		/* In .debug_frame, functions that the linker dropped stay at address 0. */
		b->table->bad_fde_cnt += section == EH_FRAME;
		return 0;
	}
	if (f.pc_end - text->vaddr > text->mem_bytes)
		f.pc_end = text->vaddr + text->mem_bytes;
	return vec_push(&b->functions, f);
}

static int list_functions(struct builder *b, uint32_t section)
{
	struct cfi_fde fde;
	int ret, err;

	for (;;) {
		ret = cfi_next(&b->reader[section], &fde);
		if (!ret || !elf_file_step(b->ef, 1) ||
		    !elf_file_fill(b->ef, sizeof(struct function)))
			return 0;
		if (ret < 0) {
			b->table->bad_fde_cnt++;
			continue;
		}
		err = function_add(b, section, &fde);
		if (err)
			return err;
	}
}

static int by_pc(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->pc != y->pc)
		return x->pc < y->pc ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

static void sort_functions(struct builder *b)
{
	size_t i;

	for (i = 1; i < b->functions.cnt; i++) {
		if (b->functions.data[i - 1].pc > b->functions.data[i].pc)
			break;
	}
	if (i < b->functions.cnt)
		qsort(b->functions.data, b->functions.cnt, sizeof(*b->functions.data), by_pc);
}

/* The number of functions that begin at or below pc, among the first cnt, which are sorted. */
static size_t functions_up_to(const struct builder *b, size_t cnt, uint64_t pc)
{
	return sorted_find(b->functions.data, cnt, sizeof(*b->functions.data),
			   sorted_off(b->functions.data, pc), pc, true);
}

static bool is_covered(const struct builder *b, size_t cnt, uint64_t pc, uint64_t pc_end)
{
	size_t below = functions_up_to(b, cnt, pc_end - 1);

	return below && b->functions.data[below - 1].pc_end > pc;
}

/* Drop functions of .debug_frame that .eh_frame covers, whose cnt functions come first, sorted. */
static void drop_covered(struct builder *b, size_t cnt)
{
	size_t kept = cnt, i;

	for (i = cnt; i < b->functions.cnt; i++) {
		const struct function *f = &b->functions.data[i];

		if (!is_covered(b, cnt, f->pc, f->pc_end))
			b->functions.data[kept++] = *f;
	}
	b->functions.cnt = kept;
}

/* .eh_frame ends at its terminator; this only bounds the search for the terminator in a damaged file. */
#define EH_FRAME_BYTES_CAP (256U << 20)
#define EH_FRAME_HDR_BYTES 16 /* as far as its pointer to .eh_frame may reach */

/* Read the address of .eh_frame from the .eh_frame_hdr at hdr_vaddr. */
static int eh_frame_vaddr(const struct elf_file *ef, uint64_t hdr_vaddr, uint64_t *ret)
{
	struct cfi_cursor c = { 0 };
	uint64_t version, encoding;
	size_t have;

	c.pos = elf_file_at(ef, hdr_vaddr, EH_FRAME_HDR_BYTES, &have);
	if (!c.pos)
		return -ENOENT;
	c.end = c.pos + have;
	version = cfi_u8(&c);
	encoding = cfi_u8(&c);
	/* the encodings of the search table are not needed */
	cfi_u8(&c);
	cfi_u8(&c);
	*ret = cfi_pointer(&c, (uint8_t)encoding, hdr_vaddr + 4, hdr_vaddr);
	return version == 1 && !c.is_bad ? 0 : -ENOENT;
}

int unwind_eh_frame(struct elf_file *ef, struct cfi_section *ret)
{
	struct elf_section s;
	GElf_Phdr ph;
	uint64_t vaddr;
	int err;

	err = elf_file_section(ef, ".eh_frame", &s);
	if (!err && s.bytes) {
		*ret = (struct cfi_section){ .data = s.data, .bytes = s.bytes, .vaddr = s.vaddr };
		return 0;
	}
	if (!elf_file_phdr(ef, PT_GNU_EH_FRAME, &ph))
		return -ENOENT;
	err = eh_frame_vaddr(ef, ph.p_vaddr, &vaddr);
	if (err)
		return err;
	memset(ret, 0, sizeof(*ret));
	ret->vaddr = vaddr;
	ret->ends_at_zero = true;
	ret->data = elf_file_at(ef, vaddr, EH_FRAME_BYTES_CAP, &ret->bytes);
	return ret->data ? 0 : -ENOENT;
}

int unwind_debug_frame(struct elf_file *ef, struct cfi_section *ret)
{
	struct elf_section s;
	int err;

	err = elf_file_section(ef, ".debug_frame", &s);
	if (err)
		return err;
	*ret = (struct cfi_section){
		.data = s.data,
		.bytes = s.bytes,
		.is_debug_frame = true,
	};
	return s.bytes ? 0 : -ENOENT;
}

/* vaddr of the first instruction; -ENOENT: the file is not a program that is started. */
static int unwind_entry(const struct elf_file *ef, uint64_t *ret_vaddr)
{
	const char *soname = elf_file_soname(ef);

	/* A library has no entry point, or a main() for fun; the loader is entered first. */
	if (soname && !strstr(soname, "ld-"))
		return -ENOENT;
	*ret_vaddr = elf_file_ehdr(ef)->e_entry;
	return *ret_vaddr ? 0 : -ENOENT;
}

struct entries {
	VEC(uint64_t) v;
};

static int add_symbols(struct elf_file *ef, uint32_t type, struct entries *ret)
{
	struct elf_symtab t;
	GElf_Sym sym;
	int err = 0;

	if (!elf_file_symtab(ef, type, &t))
		return 0;
	for (size_t i = 0; !err && i < t.cnt && elf_file_step(ef, 1); i++) {
		if (gelf_getsym(t.syms, (int)i, &sym) && GELF_ST_TYPE(sym.st_info) == STT_FUNC &&
		    sym.st_shndx != SHN_UNDEF)
			err = vec_push(&ret->v, sym.st_value);
	}
	return err;
}

/* Add the pointers in data: some of them lead to functions. */
static int add_relocations(struct elf_file *ef, struct entries *ret)
{
	Elf_Data *data = elf_file_data(ef, elf_file_find(ef, ".rela.dyn"));
	GElf_Rela rela;
	int err = 0;

	for (int i = 0; !err && gelf_getrela(data, i, &rela) && elf_file_step(ef, 1); i++) {
		if (GELF_R_TYPE(rela.r_info) == R_X86_64_RELATIVE)
			err = vec_push(&ret->v, (uint64_t)rela.r_addend);
	}
	return err;
}

int unwind_entries(struct elf_file *ef, uint64_t **ret, size_t *ret_cnt)
{
	struct entries entries = { 0 };
	int err;

	err = add_symbols(ef, SHT_SYMTAB, &entries);
	if (!err)
		err = add_symbols(ef, SHT_DYNSYM, &entries);
	if (!err)
		err = add_relocations(ef, &entries);
	if (err) {
		vec_release(&entries.v);
		return err;
	}
	sorted_make(entries.v.data, entries.v.cnt, sizeof(*entries.v.data), 0);
	*ret = entries.v.data;
	*ret_cnt = entries.v.cnt;
	return 0;
}

static int add_entry(struct builder *b)
{
	struct function f = { .section = ENTRY };
	const struct elf_segment *text;
	size_t cnt = b->functions.cnt, next;
	int err;

	err = unwind_entry(b->ef, &f.pc);
	if (err)
		return err == -ENOENT ? 0 : err;
	text = text_of(b->ef, f.pc);
	if (!text || is_covered(b, cnt, f.pc, f.pc + 1))
		return 0;
	f.pc_end = text->vaddr + text->mem_bytes;
	if (f.pc_end - f.pc > ENTRY_BYTES)
		f.pc_end = f.pc + ENTRY_BYTES;
	next = functions_up_to(b, cnt, f.pc);
	if (next < cnt && b->functions.data[next].pc < f.pc_end)
		f.pc_end = b->functions.data[next].pc;
	err = vec_push(&b->functions, f);
	sort_functions(b);
	return err;
}

static int gap_add(struct builder *b, uint64_t pc, uint64_t pc_end, uint64_t *gaps_bytes)
{
	struct function f = { .pc = pc, .pc_end = pc_end, .section = GAP };
	uint64_t bytes = pc_end - pc;

	if (bytes < GAP_BYTES_MIN || bytes > UNWIND_SCAN_BYTES_CAP ||
	    *gaps_bytes + bytes > GAPS_BYTES_CAP)
		return 0;
	*gaps_bytes += bytes;
	return vec_push(&b->functions, f);
}

/* Add the parts of [pc, end) outside of the first cnt functions, sorted. */
static int add_gaps_of(struct builder *b, uint64_t pc, uint64_t end, size_t cnt,
		       uint64_t *gaps_bytes)
{
	size_t i = pc ? functions_up_to(b, cnt, pc - 1) : 0;
	int err;

	/* vec_push() moves the array: keep no pointer into it. */
	for (; i < cnt && b->functions.data[i].pc < end && elf_file_step(b->ef, 1); i++) {
		uint64_t next = b->functions.data[i].pc, next_end = b->functions.data[i].pc_end;

		err = next > pc ? gap_add(b, pc, next, gaps_bytes) : 0;
		if (err)
			return err;
		if (next_end > pc)
			pc = next_end;
	}
	return end > pc ? gap_add(b, pc, end, gaps_bytes) : 0;
}

/*
 * Looks at executable sections, not segments, because segments of older linkers contain read-only data as well. BOLT
 * keeps the old text, which is not executed any more. Without section headers, segments that do not begin with the
 * file's header are taken for code.
 */
static int add_all_gaps(struct builder *b, uint64_t *gaps_bytes)
{
	size_t seg_cnt, cnt = b->functions.cnt;
	const struct elf_segment *seg = elf_file_segments(b->ef, &seg_cnt);
	Elf *elf = elf_file_elf(b->ef);
	Elf_Scn *scn = elf_nextscn(elf, NULL);
	bool has_sections = scn;
	GElf_Shdr sh;
	int err = 0;

	for (; scn && !err && elf_file_step(b->ef, 1); scn = elf_nextscn(elf, scn)) {
		if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_EXECINSTR) ||
		    !(sh.sh_flags & SHF_ALLOC) || sh.sh_type != SHT_PROGBITS ||
		    !text_of(b->ef, sh.sh_addr) || sh.sh_addr + sh.sh_size < sh.sh_addr ||
		    !strncmp(elf_file_section_name(b->ef, scn), ".bolt.org", 9))
			continue;
		err = add_gaps_of(b, sh.sh_addr, sh.sh_addr + sh.sh_size, cnt, gaps_bytes);
	}
	for (size_t i = 0; i < seg_cnt && !has_sections && !err; i++) {
		if (seg[i].is_exec && seg[i].off)
			err = add_gaps_of(b, seg[i].vaddr, seg[i].vaddr + seg[i].file_bytes, cnt,
					  gaps_bytes);
	}
	return err;
}

/*
 * Add code without frame information: musl, which distributions ship without it, and the few functions of the linker's
 * start files in all other files.
 */
static int add_gaps(struct builder *b)
{
	uint64_t gaps_bytes = 0;
	int err;

	/* Go's code does not come from a C compiler, and there is a lot of it. */
	if (elf_file_is_go(b->ef))
		return 0;
	err = unwind_scanner_open(b->arch->machine, &b->scanner);
	if (err)
		return err == -ENOTSUP ? 0 : err;
	err = add_all_gaps(b, &gaps_bytes);
	if (!err && gaps_bytes > GAPS_BYTES_FEW)
		err = unwind_entries(b->ef, &b->entries, &b->entry_cnt);
	sort_functions(b);
	return err;
}

static int find_functions(struct builder *b)
{
	struct cfi_section section;
	size_t cnt;
	int err;

	err = unwind_eh_frame(b->ef, &section);
	if (!err) {
		b->reader[EH_FRAME] = (struct cfi_reader){ .section = section };
		err = list_functions(b, EH_FRAME);
		if (err)
			return err;
		sort_functions(b);
	} else if (err != -ENOENT) {
		return err;
	}
	cnt = b->functions.cnt;
	/* A damaged or huge .debug_frame is no reason to give up .eh_frame. */
	err = unwind_debug_frame(b->ef, &section);
	if (!err) {
		b->reader[DEBUG_FRAME] = (struct cfi_reader){ .section = section };
		err = list_functions(b, DEBUG_FRAME);
		if (err)
			return err;
		drop_covered(b, cnt);
		sort_functions(b);
	} else if (!cnt) {
		return err;
	}
	b->table->fde_cnt = (uint32_t)b->functions.cnt;
	if (!b->functions.cnt)
		return -ENOENT;
	err = add_entry(b);
	return err || !b->with_gaps ? err : add_gaps(b);
}

static int size_pages(struct builder *b)
{
	struct unwind_table *t = b->table;
	uint64_t last = 0, cnt;
	size_t i;

	for (i = 0; i < b->functions.cnt; i++) {
		if (b->functions.data[i].pc_end - 1 > last)
			last = b->functions.data[i].pc_end - 1;
	}
	t->first_page = b->functions.data[0].pc >> HT_PAGE_SHIFT;
	cnt = (last >> HT_PAGE_SHIFT) - t->first_page + 1;
	if (cnt > HT_PAGES_CAP)
		return -EFBIG;
	t->pages = calloc(cnt, sizeof(*t->pages));
	if (!t->pages)
		return -ENOMEM;
	t->page_cnt = (uint32_t)cnt;
	return 0;
}

static int on_cfi_row(void *arg, uint64_t pc, const struct cfi_row *row)
{
	struct builder *b = arg;

	return row_put(b, pc, b->arch->row(row, b->is_signal));
}

static int on_scan_row(void *arg, uint64_t vaddr, const struct ht_row *row)
{
	return row_put(arg, vaddr, *row);
}

/*
 * Pay for running a program, or code, of this size: is there budget for the time, and for the rows that it may give? Of
 * two bytes one advances and one changes something.
 */
static bool may_run(const struct builder *b, uint64_t bytes)
{
	return elf_file_step(b->ef, 1 + bytes / 4) &&
	       elf_file_fill(b->ef, (1 + bytes / 2) * sizeof(struct ht_row));
}

static int run_gap(struct builder *b, const struct function *f)
{
	static const struct ht_row none = { .cfa = HT_CFA_NONE };
	struct unwind_code code = { .vaddr = f->pc };
	int err;

	err = row_put(b, f->pc, none);
	if (err)
		return err;
	code.data = elf_file_at(b->ef, f->pc, f->pc_end - f->pc, &code.bytes);
	if (!code.data)
		return 0;
	/* Following an instruction is as much work as ten in frame information. */
	if (!may_run(b, code.bytes) || !elf_file_step(b->ef, code.bytes * 2))
		return -E2BIG;
	code.entries = b->entries;
	code.entry_cnt = b->entry_cnt;
	return unwind_scan(b->scanner, &code, on_scan_row, b);
}

static int run_function(struct builder *b, const struct function *f)
{
	static const struct ht_row end = { .cfa = HT_CFA_END };
	static const struct ht_row unsupported = { .cfa = HT_CFA_UNSUPPORTED };
	struct cfi_reader *reader;
	struct cfi_fde fde;
	uint64_t bad_pc;
	int err;

	if (f->section == ENTRY)
		return row_put(b, f->pc, end);
	if (f->section == GAP)
		return run_gap(b, f);
	reader = &b->reader[f->section];
	err = cfi_fde_at(reader, f->off, &fde);
	if (err)
		return err;
	fde.pc_end = f->pc_end;
	if (!may_run(b, (size_t)(fde.insn_end - fde.insn) +
				(size_t)(fde.cie->insn_end - fde.cie->insn)))
		return -E2BIG;
	b->is_signal = fde.cie->is_signal;
	if (fde.cie->ra_reg == b->arch->regs.ra) {
		err = cfi_run(&reader->section, &fde, &b->arch->regs, on_cfi_row, b, &bad_pc);
		if (err != -EBADMSG)
			return err;
	} else {
		bad_pc = f->pc;
	}
	b->table->bad_fde_cnt++;
	return bad_pc < f->pc_end ? row_put(b, bad_pc, unsupported) : 0;
}

static int fill_rows(struct builder *b)
{
	static const struct ht_row none = { .cfa = HT_CFA_NONE };
	struct unwind_table *t = b->table;
	uint64_t pc = b->functions.data[0].pc;
	const struct function *f;
	int err = 0;

	vec_each(&b->functions, f) {
		if (f->pc < pc) {
			t->bad_fde_cnt++;
			continue;
		}
		if (f->pc > pc)
			err = row_put(b, pc, none);
		if (!err)
			err = run_function(b, f);
		if (err == -E2BIG) /* too costly: the table ends here */
			break;
		if (err)
			return err;
		pc = f->pc_end;
	}
	/* The end of the last function may be the end of the last page. */
	if ((pc >> HT_PAGE_SHIFT) - t->first_page < t->page_cnt)
		return row_put(b, pc, none);
	return page_advance(b, pc - 1);
}

static int build(struct builder *b)
{
	struct ht_row *rows;
	int err;

	err = find_functions(b);
	if (!err)
		err = size_pages(b);
	if (!err)
		err = fill_rows(b);
	if (err)
		return err;
	/* The table lives as long as the recording: return the memory that doubling left unused. */
	rows = realloc(b->rows.data, (b->rows.cnt ? b->rows.cnt : 1) * sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	b->table->rows = rows;
	b->table->row_cnt = (uint32_t)b->rows.cnt;
	b->rows.data = NULL;
	return 0;
}

static int take_marks(struct builder *b, const struct unwind_mark *marks, size_t cnt)
{
	struct unwind_mark *last = NULL;
	size_t i;

	if (vec_reserve(&b->marks, cnt))
		return -ENOMEM;
	for (i = 0; i < cnt; i++)
		if (marks[i].start_vaddr < marks[i].end_vaddr)
			b->marks.data[b->marks.cnt++] = marks[i];
	vec_sort_by(&b->marks, start_vaddr);
	for (i = 0, cnt = b->marks.cnt, b->marks.cnt = 0; i < cnt; i++) {
		struct unwind_mark mark = b->marks.data[i];

		if (last && mark.start_vaddr < last->end_vaddr) {
			last->bits |= mark.bits;
			if (mark.end_vaddr > last->end_vaddr)
				last->end_vaddr = mark.end_vaddr;
			continue;
		}
		last = &b->marks.data[b->marks.cnt++];
		*last = mark;
	}
	return 0;
}

int unwind_table_build(struct elf_file *ef, const struct unwind_options *opts,
		       struct unwind_table **ret)
{
	struct builder *b;
	int err = -ENOTSUP;

	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->ef = ef;
	b->with_gaps = !opts || !opts->described_only;
	b->arch = unwind_arch_find(elf_file_ehdr(ef)->e_machine);
	if (!b->arch || !elf_file_is_64(ef))
		goto out;
	err = opts ? take_marks(b, opts->marks, opts->mark_cnt) : 0;
	if (err)
		goto out;
	err = -ENOMEM;
	b->table = calloc(1, sizeof(*b->table));
	if (!b->table)
		goto out;
	err = build(b);
	if (err)
		goto out;
	*ret = b->table;
	b->table = NULL;
out:
	unwind_table_free(b->table);
	vec_release(&b->functions);
	vec_release(&b->rows);
	vec_release(&b->marks);
	unwind_scanner_close(b->scanner);
	free(b->entries);
	free(b);
	return err;
}

void unwind_table_free(struct unwind_table *t)
{
	if (!t)
		return;
	free(t->pages);
	free(t->rows);
	free(t);
}
