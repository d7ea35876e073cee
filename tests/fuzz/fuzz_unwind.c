/* SPDX-License-Identifier: MIT */
/*
 * fuzz_unwind.c - frame information, and code without it, made of arbitrary bytes.
 *
 * The first byte says which kind of input the rest is. Kinds 0 to 2 are sections as they stand in
 * a file. They are wrapped into an ELF image with two text segments, so that no effort is spent on
 * getting past the ELF reader. Whatever table comes out must be one that BPF can search.
 * Kind 3 is code, which goes to the scanner.
 */
#include "fuzz.h"

#include <elf.h>

#include "../lib/find_row.h"
#include "cost.h"
#include "elf/elf_file.h"
#include "elf/unwind_table_priv.h"
#include "elf/unwind_table.h"

#define INPUT_CAP 16384
#define FRAME_OFF 0x1000
#define TEXT_VADDR 0x100000
#define TEXT_BYTES 0x80000
#define FAR_TEXT_VADDR 0x40000000

static void segment(Elf64_Phdr *ph, uint32_t type, uint32_t flags, uint64_t vaddr, uint64_t bytes)
{
	*ph = (Elf64_Phdr){ .p_type = type, .p_flags = flags, .p_vaddr = vaddr };
	ph->p_align = 0x1000;
	ph->p_memsz = bytes;
	ph->p_filesz = flags & PF_X ? 0x10 : bytes;
}

static void section(Elf64_Shdr *sh, uint32_t name, uint32_t type, uint64_t off, uint64_t bytes)
{
	sh->sh_name = name;
	sh->sh_type = type;
	sh->sh_addr = off;
	sh->sh_offset = off;
	sh->sh_size = bytes;
	sh->sh_addralign = 1;
}

/* kind 0: .eh_frame; 1: .debug_frame; 2: .eh_frame_hdr and what it points at, no sections. */
static size_t make_image(uint8_t *image, unsigned int kind, const uint8_t *data, size_t bytes)
{
	static const char names[] = "\0.eh_frame\0.debug_frame\0.shstrtab";
	Elf64_Ehdr *eh = (Elf64_Ehdr *)image;
	Elf64_Phdr *ph = (Elf64_Phdr *)(image + sizeof(*eh));
	Elf64_Shdr *sh = (Elf64_Shdr *)(image + 0x200);

	memcpy(eh->e_ident, ELFMAG, SELFMAG);
	eh->e_ident[EI_CLASS] = ELFCLASS64;
	eh->e_ident[EI_DATA] = ELFDATA2LSB;
	eh->e_ident[EI_VERSION] = EV_CURRENT;
	eh->e_type = ET_DYN;
	eh->e_machine = EM_X86_64;
	eh->e_version = EV_CURRENT;
	eh->e_entry = TEXT_VADDR + 0x100;
	eh->e_phoff = sizeof(*eh);
	eh->e_phentsize = sizeof(*ph);
	eh->e_phnum = 4;
	eh->e_ehsize = sizeof(*eh);
	segment(&ph[0], PT_LOAD, PF_R, 0, FRAME_OFF + bytes);
	segment(&ph[1], PT_LOAD, PF_R | PF_X, TEXT_VADDR, TEXT_BYTES);
	segment(&ph[2], PT_LOAD, PF_R | PF_X, FAR_TEXT_VADDR, TEXT_BYTES);
	segment(&ph[3], PT_GNU_EH_FRAME, PF_R, FRAME_OFF, bytes);
	memcpy(image + FRAME_OFF, data, bytes);
	if (kind == 2)
		return FRAME_OFF + bytes;
	eh->e_shoff = 0x200;
	eh->e_shentsize = sizeof(*sh);
	eh->e_shnum = 3;
	eh->e_shstrndx = 2;
	memcpy(image + 0x400, names, sizeof(names));
	section(&sh[1], kind ? 11 : 1, SHT_PROGBITS, FRAME_OFF, bytes);
	section(&sh[2], 24, SHT_STRTAB, 0x400, sizeof(names));
	return FRAME_OFF + bytes;
}

static void check_page(const struct unwind_table *t, uint32_t page, uint32_t *seen)
{
	const struct unwind_page *p = &t->pages[page];
	const struct ht_row *rows = t->rows + p->first;
	uint64_t base = (t->first_page + page) << HT_PAGE_SHIFT;
	uint32_t i;

	if (!p->row_cnt)
		return;
	if (p->first != *seen || p->row_cnt > t->row_cnt - *seen || rows[0].pc_lo)
		abort();
	*seen += p->row_cnt;
	for (i = 0; i < p->row_cnt; i++) {
		if (i && rows[i].pc_lo <= rows[i - 1].pc_lo)
			abort();
		if (rows[i].cfa >= HT_CFA_CNT || rows[i].rbp > HT_RBP_UNDEFINED)
			abort();
		if (find_row(t, base + rows[i].pc_lo) != &rows[i])
			abort();
	}
}

static int on_scan_row(void *arg, uint64_t vaddr, const struct ht_row *row)
{
	uint64_t *next = arg;

	if (vaddr < *next || vaddr >= TEXT_VADDR + INPUT_CAP || row->cfa >= HT_CFA_CNT)
		abort();
	*next = vaddr + 1;
	return 0;
}

static void scan(const uint8_t *data, size_t bytes)
{
	static const uint64_t entries[] = { 0, TEXT_VADDR + 8, TEXT_VADDR + 100, ~0ULL };
	struct unwind_scanner *s = NULL;
	struct unwind_code code = { .vaddr = TEXT_VADDR, .entries = entries, .entry_cnt = 4 };
	uint64_t next = TEXT_VADDR;
	uint8_t *copy = malloc(bytes ? bytes : 1); /* so that reading a byte too many is seen */

	if (!copy || unwind_scanner_open(EM_X86_64, &s))
		abort();
	memcpy(copy, data, bytes);
	code.data = copy;
	code.bytes = bytes;
	if (unwind_scan(s, &code, on_scan_row, &next))
		abort();
	unwind_scanner_close(s);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static uint8_t image[FRAME_OFF + INPUT_CAP];
	struct unwind_table *t = NULL;
	struct elf_file *ef = NULL;
	uint32_t i, seen = 0;
	uint64_t start_ns = cost_now_ns();
	size_t image_bytes;

	if (bytes < 1 || bytes > INPUT_CAP)
		return 0;
	if (data[0] % 4 == 3) {
		scan(data + 1, bytes - 1);
		return 0;
	}
	memset(image, 0, sizeof(image));
	image_bytes = make_image(image, data[0] % 4, data + 1, bytes - 1);
	if (elf_file_open_mem(image, image_bytes, &ef))
		abort();
	if (!unwind_table_build(ef, NULL, &t)) {
		for (i = 0; i < t->page_cnt; i++)
			check_page(t, i, &seen);
		if (seen != t->row_cnt)
			abort();
	}
	unwind_table_free(t);
	cost_check(ef, start_ns, image_bytes);
	elf_file_close(ef);
	return 0;
}
