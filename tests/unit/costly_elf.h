/* SPDX-License-Identifier: MIT */
/*
 * costly_elf.h - ELF files of any size that ask for as much work as they can: tables that lie over each
 * other, so that each of the one is looked at for each of the other.
 *
 * All are made of a size and filled up to about that size. Nothing of them runs.
 */
#ifndef HT_TESTS_COSTLY_ELF_H
#define HT_TESTS_COSTLY_ELF_H

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define COSTLY_TEXT_VADDR 0x100000000ULL
#define COSTLY_TEXT_BYTES 0x4000000ULL
#define COSTLY_PHDRS_CAP 65534

struct costly {
	uint8_t *data;
	size_t bytes, cap;
	Elf64_Shdr *shdrs;
	size_t shdr_cnt;
	uint64_t phdr_cnt;
};

static inline uint64_t costly_add(struct costly *c, const void *p, size_t bytes)
{
	uint64_t off = (c->bytes + 63) & ~(size_t)63;

	if (off + bytes > c->cap) {
		size_t cap = (off + bytes) * 2;
		uint8_t *grown = realloc(c->data, cap);

		if (!grown)
			abort();
		memset(grown + c->cap, 0, cap - c->cap);
		c->data = grown;
		c->cap = cap;
	}
	if (p)
		memcpy(c->data + off, p, bytes);
	c->bytes = off + bytes;
	return off;
}

/* phdr_cnt executable segments of a page, one above the other; the last, or the thousandth, has the text. */
static inline void costly_begin(struct costly *c, uint64_t phdr_cnt)
{
	uint64_t off;

	*c = (struct costly){ .phdr_cnt = phdr_cnt };
	costly_add(c, NULL, sizeof(Elf64_Ehdr));
	off = costly_add(c, NULL, phdr_cnt * sizeof(Elf64_Phdr));
	for (uint64_t i = 0; i < phdr_cnt; i++) {
		Elf64_Phdr ph = { .p_type = PT_LOAD,
				  .p_flags = PF_R | PF_X,
				  .p_vaddr = 0x10000000 + i * 0x1000,
				  .p_offset = 0x1000,
				  .p_filesz = 0x10,
				  .p_memsz = 0x10,
				  .p_align = 0x1000 };

		if (i == (phdr_cnt < 1000 ? phdr_cnt - 1 : 999)) {
			ph.p_vaddr = COSTLY_TEXT_VADDR;
			ph.p_filesz = ph.p_memsz = COSTLY_TEXT_BYTES;
			ph.p_offset = 0;
		}
		memcpy(c->data + off + i * sizeof(ph), &ph, sizeof(ph));
	}
	c->shdr_cnt = 1;
	c->shdrs = calloc(1, sizeof(*c->shdrs));
}

static inline size_t costly_section(struct costly *c, Elf64_Shdr sh)
{
	if (!(c->shdr_cnt & (c->shdr_cnt - 1)))
		c->shdrs = realloc(c->shdrs, 2 * c->shdr_cnt * sizeof(*c->shdrs));
	if (!c->shdrs)
		abort();
	c->shdrs[c->shdr_cnt] = sh;
	return c->shdr_cnt++;
}

/* Names are offsets in here. */
#define COSTLY_NAMES                                                                               \
	"\0.note.stapsdt\0.eh_frame\0.symtab\0.strtab\0.rela.dyn\0.dynsym\0.plt\0.text\0.note.x\0" \
	".debug_frame\0"

static inline uint32_t costly_name(const char *name)
{
	static const char names[] = COSTLY_NAMES;
	size_t at = 1;

	while (strcmp(names + at, name) != 0)
		at += strlen(names + at) + 1;
	return (uint32_t)at;
}

/* A section of these bytes of the file. */
static inline size_t costly_named(struct costly *c, const char *name, uint32_t type, uint64_t off,
				  uint64_t bytes)
{
	return costly_section(c, (Elf64_Shdr){ .sh_name = costly_name(name),
					       .sh_type = type,
					       .sh_offset = off,
					       .sh_size = bytes });
}

static inline void costly_end(struct costly *c)
{
	static const char names[] = COSTLY_NAMES;
	uint64_t names_off = costly_add(c, names, sizeof(names)), shoff;
	size_t names_idx = costly_section(c, (Elf64_Shdr){ .sh_type = SHT_STRTAB,
							   .sh_offset = names_off,
							   .sh_size = sizeof(names) });
	Elf64_Ehdr *eh;

	c->shdrs[0] = (Elf64_Shdr){ .sh_size = c->shdr_cnt >= SHN_LORESERVE ? c->shdr_cnt : 0,
				    .sh_link = (Elf64_Word)names_idx };
	shoff = costly_add(c, c->shdrs, c->shdr_cnt * sizeof(Elf64_Shdr));
	free(c->shdrs);
	c->shdrs = NULL;
	eh = (Elf64_Ehdr *)c->data;
	memcpy(eh->e_ident, ELFMAG, SELFMAG);
	eh->e_ident[EI_CLASS] = ELFCLASS64;
	eh->e_ident[EI_DATA] = ELFDATA2LSB;
	eh->e_ident[EI_VERSION] = EV_CURRENT;
	eh->e_type = ET_DYN;
	eh->e_machine = EM_X86_64;
	eh->e_ehsize = sizeof(*eh);
	eh->e_phoff = 64;
	eh->e_phentsize = sizeof(Elf64_Phdr);
	eh->e_phnum = (Elf64_Half)c->phdr_cnt;
	eh->e_shentsize = sizeof(Elf64_Shdr);
	eh->e_shoff = shoff;
	eh->e_shnum = c->shdr_cnt >= SHN_LORESERVE ? 0 : (Elf64_Half)c->shdr_cnt;
	eh->e_shstrndx = SHN_XINDEX;
}

/* As many segments as go into a quarter of the file. */
static inline uint64_t costly_phdr_cnt(size_t size)
{
	uint64_t cnt = size / 4 / sizeof(Elf64_Phdr);

	return cnt < 1 ? 1 : cnt < COSTLY_PHDRS_CAP ? cnt : COSTLY_PHDRS_CAP;
}

/* Half of the file notes, at most what is read at once; half of it sections that are these notes. */
static inline void costly_notes(struct costly *c, size_t size)
{
	Elf64_Nhdr nh = { .n_type = 77 };
	size_t bytes = size / 2 < 1 << 20 ? size / 2 : 1 << 20;
	uint64_t off;

	costly_begin(c, 1);
	off = costly_add(c, NULL, bytes);
	for (size_t at = 0; at + sizeof(nh) <= bytes; at += sizeof(nh))
		memcpy(c->data + off + at, &nh, sizeof(nh));
	while (c->bytes + c->shdr_cnt * sizeof(Elf64_Shdr) < size)
		costly_named(c, ".note.x", SHT_NOTE, off, bytes);
	costly_end(c);
}

/* 101 sections, all of them one piece that unpacks to as many zeros as 128 MiB. */
static inline void costly_packed(struct costly *c, size_t size)
{
	size_t bytes = size / 10 * 9 * 1000 < 128 << 20 ? size / 10 * 9 * 1000 : 128 << 20;
	uLongf packed_bytes = compressBound(bytes);
	uint8_t *zeros = calloc(1, bytes), *packed = malloc(packed_bytes + sizeof(Elf64_Chdr));
	Elf64_Chdr ch = { .ch_type = ELFCOMPRESS_ZLIB, .ch_size = bytes, .ch_addralign = 1 };
	uint64_t off;

	if (!zeros || !packed ||
	    compress2(packed + sizeof(ch), &packed_bytes, zeros, bytes, 9) != Z_OK)
		abort();
	memcpy(packed, &ch, sizeof(ch));
	costly_begin(c, 1);
	off = costly_add(c, packed, packed_bytes + sizeof(ch));
	for (int i = 0; i < 101; i++)
		costly_section(c, (Elf64_Shdr){ .sh_name = costly_name(".note.stapsdt"),
						.sh_type = SHT_NOTE,
						.sh_flags = SHF_COMPRESSED,
						.sh_offset = off,
						.sh_size = packed_bytes + sizeof(ch) });
	free(zeros);
	free(packed);
	if (c->bytes < size)
		costly_add(c, NULL, size - c->bytes);
	costly_end(c);
}

/* insn_bytes of program in each FDE, and as much in their CIE. */
static inline uint64_t costly_fdes(struct costly *c, size_t bytes, size_t insn_bytes,
				   uint64_t *ret_bytes)
{
	uint8_t *p = calloc(1, bytes + 1024);
	size_t at = 0, fde_bytes = 4 + 4 + 8 + 8 + 1 + insn_bytes;
	uint32_t word;
	uint64_t pc = COSTLY_TEXT_VADDR, off;

	if (!p)
		abort();
	/* zR, code 1, data -8, ra 16, absptr; cfa rsp+8, ra at -8; nops */
	word = (uint32_t)(4 + 1 + 3 + 3 + 2 + 6 + insn_bytes);
	memcpy(p, &word, 4);
	memcpy(p + 8, "\1zR\0\1\x78\x10\1\0\x0c\7\x08\x90\1", 14);
	at = 4 + word;
	while (at + fde_bytes < bytes) {
		uint64_t len = 4;

		word = (uint32_t)(fde_bytes - 4);
		memcpy(p + at, &word, 4);
		word = (uint32_t)(at + 4);
		memcpy(p + at + 4, &word, 4);
		memcpy(p + at + 8, &pc, 8);
		memcpy(p + at + 16, &len, 8);
		pc += len;
		if (pc >= COSTLY_TEXT_VADDR + COSTLY_TEXT_BYTES)
			pc = COSTLY_TEXT_VADDR;
		at += fde_bytes;
	}
	off = costly_add(c, p, at);
	free(p);
	*ret_bytes = at;
	return off;
}

/* Segments, and functions in the last of them. */
static inline void costly_segments_fdes(struct costly *c, size_t size)
{
	uint64_t off, bytes;

	costly_begin(c, costly_phdr_cnt(size));
	off = costly_fdes(c, size - c->bytes, 0, &bytes);
	costly_named(c, ".eh_frame", SHT_PROGBITS, off, bytes);
	costly_end(c);
}

/* Functions, and executable sections between which nothing is. */
static inline void costly_sections_fdes(struct costly *c, size_t size)
{
	uint64_t off, bytes;

	costly_begin(c, 1);
	off = costly_fdes(c, size / 2, 0, &bytes);
	costly_named(c, ".eh_frame", SHT_PROGBITS, off, bytes);
	while (c->bytes + c->shdr_cnt * sizeof(Elf64_Shdr) < size)
		costly_section(c, (Elf64_Shdr){ .sh_name = costly_name(".text"),
						.sh_type = SHT_PROGBITS,
						.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
						.sh_addr = COSTLY_TEXT_VADDR,
						.sh_size = COSTLY_TEXT_BYTES });
	costly_end(c);
}

/* Functions whose CIE has as long a program as is read. */
static inline void costly_programs(struct costly *c, size_t size)
{
	uint64_t off, bytes;

	costly_begin(c, 1);
	off = costly_fdes(c, size - c->bytes, 200, &bytes);
	/* all FDEs but their heads are gone; the CIE stays as it is */
	costly_named(c, ".eh_frame", SHT_PROGBITS, off, bytes);
	costly_end(c);
}

static inline void costly_symbols_of(struct costly *c, size_t bytes, const char *strs,
				     size_t str_bytes, int varied)
{
	size_t cnt = bytes / sizeof(Elf64_Sym), strs_idx;
	uint64_t strs_off = costly_add(c, strs, str_bytes), off;

	off = costly_add(c, NULL, cnt * sizeof(Elf64_Sym));
	for (size_t i = 1; i < cnt; i++) {
		Elf64_Sym sym = { .st_name = 1 + (uint32_t)(varied ? i % (str_bytes / 2) : 0),
				  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				  .st_shndx = 1,
				  .st_value = COSTLY_TEXT_VADDR +
					      (varied ? 0 : 4 * i % COSTLY_TEXT_BYTES),
				  .st_size = 4 };

		memcpy(c->data + off + i * sizeof(sym), &sym, sizeof(sym));
	}
	strs_idx = costly_named(c, ".strtab", SHT_STRTAB, strs_off, str_bytes);
	costly_section(c, (Elf64_Shdr){ .sh_name = costly_name(".symtab"),
					.sh_type = SHT_SYMTAB,
					.sh_link = (Elf64_Word)strs_idx,
					.sh_offset = off,
					.sh_size = cnt * sizeof(Elf64_Sym),
					.sh_entsize = sizeof(Elf64_Sym) });
}

/* Segments, and symbols of the last of them. "malloc" and "free" make it an allocator. */
static inline void costly_segments_symbols(struct costly *c, size_t size)
{
	static const char strs[] = "\0f\0malloc\0free";
	size_t cnt;
	uint64_t at;

	costly_begin(c, costly_phdr_cnt(size));
	cnt = (size - c->bytes) / sizeof(Elf64_Sym);
	costly_symbols_of(c, cnt * sizeof(Elf64_Sym), strs, sizeof(strs), 0);
	at = c->shdrs[c->shdr_cnt - 1].sh_offset;
	for (int i = 1; i < 3; i++) {
		Elf64_Sym *sym = (Elf64_Sym *)(c->data + at) + i;

		sym->st_name = i == 1 ? 3 : 10;
		sym->st_size = 0; /* to be looked up */
	}
	costly_end(c);
}

/* One address, any number of names, each as long as a name may be. */
static inline void costly_names(struct costly *c, size_t size)
{
	size_t str_bytes = 128 * 1024;
	char *strs = malloc(str_bytes);
	Elf64_Sym *syms;

	if (!strs)
		abort();
	memset(strs, 'x', str_bytes);
	strs[0] = strs[str_bytes - 1] = 0;
	memcpy(strs + 100000, "\0malloc", 8);
	memcpy(strs + 100010, "\0free", 6);
	costly_begin(c, 1);
	costly_symbols_of(c, size > 2 * str_bytes ? size - 2 * str_bytes : size / 2, strs,
			  str_bytes, 1);
	syms = (Elf64_Sym *)(c->data + c->shdrs[c->shdr_cnt - 1].sh_offset);
	syms[1].st_name = 100001;
	syms[2].st_name = 100011;
	free(strs);
	costly_end(c);
}

/* A segment for each program header, each of them the same notes. */
static inline void costly_note_heads(struct costly *c, size_t size)
{
	uint64_t cnt = costly_phdr_cnt(size), off, bytes;
	Elf64_Nhdr nh = { .n_namesz = 8, .n_descsz = 4, .n_type = 3 };
	Elf64_Phdr *ph;

	costly_begin(c, cnt);
	bytes = size - c->bytes < 1 << 20 ? size - c->bytes : 1 << 20;
	off = costly_add(c, NULL, bytes);
	for (size_t at = 0; at + 24 <= bytes; at += 24) {
		memcpy(c->data + off + at, &nh, sizeof(nh));
		memcpy(c->data + off + at + sizeof(nh), "stapsdt", 8);
	}
	ph = (Elf64_Phdr *)(c->data + 64);
	for (uint64_t i = 0; i + 1 < cnt; i++)
		ph[i] = (Elf64_Phdr){ .p_type = PT_NOTE,
				      .p_offset = off,
				      .p_vaddr = COSTLY_TEXT_VADDR + off,
				      .p_filesz = bytes,
				      .p_memsz = bytes,
				      .p_align = 4 };
	costly_end(c);
}

/* Sections of relocations that are all the same ones; the slots have long names. */
static inline void costly_relocations(struct costly *c, size_t size)
{
	size_t str_bytes = size / 8, sym_cnt = 2, rela_cnt = size / 4 / sizeof(Elf64_Rela),
	       strs_idx, syms_idx;
	static const char entries[] = "\0malloc\0free";
	uint64_t strs_off, syms_off, relas_off;
	char *strs = malloc(str_bytes);
	Elf64_Sym *sym;

	if (!strs)
		abort();
	memset(strs, 'y', str_bytes);
	strs[0] = strs[str_bytes - 1] = 0;
	costly_begin(c, 1);
	strs_off = costly_add(c, strs, str_bytes);
	free(strs);
	syms_off = costly_add(c, NULL, sym_cnt * sizeof(Elf64_Sym));
	sym = (Elf64_Sym *)(c->data + syms_off);
	sym[1] = (Elf64_Sym){ .st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) };
	relas_off = costly_add(c, NULL, rela_cnt * sizeof(Elf64_Rela));
	for (size_t i = 0; i < rela_cnt; i++) {
		Elf64_Rela r = { .r_offset = 8 * i, .r_info = ELF64_R_INFO(1, R_X86_64_JUMP_SLOT) };

		memcpy(c->data + relas_off + i * sizeof(r), &r, sizeof(r));
	}
	strs_idx = costly_named(c, ".strtab", SHT_STRTAB, strs_off, str_bytes);
	syms_idx = costly_section(c, (Elf64_Shdr){ .sh_name = costly_name(".dynsym"),
						   .sh_type = SHT_DYNSYM,
						   .sh_link = (Elf64_Word)strs_idx,
						   .sh_offset = syms_off,
						   .sh_size = sym_cnt * sizeof(Elf64_Sym) });
	costly_symbols_of(c, 3 * sizeof(Elf64_Sym), entries, sizeof(entries), 0);
	sym = (Elf64_Sym *)(c->data + c->shdrs[c->shdr_cnt - 1].sh_offset);
	sym[1].st_name = 1;
	sym[2].st_name = 8;
	while (c->bytes + c->shdr_cnt * sizeof(Elf64_Shdr) < size)
		costly_section(c, (Elf64_Shdr){ .sh_name = costly_name(".rela.dyn"),
						.sh_type = SHT_RELA,
						.sh_flags = SHF_ALLOC,
						.sh_link = (Elf64_Word)syms_idx,
						.sh_offset = relas_off,
						.sh_size = rela_cnt * sizeof(Elf64_Rela) });
	costly_end(c);
}

/* A thousand entry points of an allocator, each of which is nearly all of the code. */
static inline void costly_code(struct costly *c, size_t size)
{
	static const char strs[] = "\0malloc\0free";
	uint64_t strs_off, off;
	size_t strs_idx;

	costly_begin(c, 1);
	strs_off = costly_add(c, strs, sizeof(strs));
	off = costly_add(c, NULL, 1024 * sizeof(Elf64_Sym));
	for (size_t i = 1; i < 1024; i++) {
		Elf64_Sym sym = { .st_name = i % 2 ? 1 : 8,
				  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				  .st_shndx = 1,
				  .st_value = COSTLY_TEXT_VADDR + 0x10000 + 2 * i,
				  .st_size = size };

		memcpy(c->data + off + i * sizeof(sym), &sym, sizeof(sym));
	}
	if (c->bytes + 65536 < size) {
		uint64_t code = costly_add(c, NULL, size - c->bytes - 4096);

		memset(c->data + code, 0x50, size - code - 4096);
	}
	strs_idx = costly_named(c, ".strtab", SHT_STRTAB, strs_off, sizeof(strs));
	costly_section(c, (Elf64_Shdr){ .sh_name = costly_name(".symtab"),
					.sh_type = SHT_SYMTAB,
					.sh_link = (Elf64_Word)strs_idx,
					.sh_offset = off,
					.sh_size = 1024 * sizeof(Elf64_Sym),
					.sh_entsize = sizeof(Elf64_Sym) });
	costly_end(c);
}

static const struct costly_kind {
	const char *name;
	void (*make)(struct costly *c, size_t size);
} costly_kinds[] = {
	{ "sections x notes", costly_notes },
	{ "sections of one compressed piece", costly_packed },
	{ "segments x functions", costly_segments_fdes },
	{ "sections x functions", costly_sections_fdes },
	{ "long programs of functions", costly_programs },
	{ "segments x symbols", costly_segments_symbols },
	{ "long names of one address", costly_names },
	{ "program headers x notes", costly_note_heads },
	{ "sections x relocations", costly_relocations },
	{ "entry points x code", costly_code },
};
#define COSTLY_KIND_CNT (sizeof(costly_kinds) / sizeof(costly_kinds[0]))

#endif
