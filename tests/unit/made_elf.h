/* SPDX-License-Identifier: MIT */
/*
 * made_elf.h - small ELF files made in memory, for tests of the readers.
 *
 * One PT_LOAD per MADE_TEXT section, at vaddr = file offset + MADE_BIAS; a section table; names.
 */
#ifndef HT_TESTS_MADE_ELF_H
#define HT_TESTS_MADE_ELF_H

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MADE_BIAS 0x400000ULL
#define MADE_SECTIONS_CAP 16
#define MADE_BYTES_CAP (1 << 20)

struct made_section {
	const char *name;
	uint32_t type, link, info;
	uint64_t flags;
	const void *data;
	size_t bytes;
	uint64_t entry_bytes;
};

struct made_elf {
	uint8_t *data;
	size_t bytes;
	Elf64_Shdr *shdrs; /* in data; [0] is the null section, the caller's begin at 1 */
	Elf64_Phdr *phdrs;
	Elf64_Ehdr *ehdr;
};

static inline uint64_t made_align(uint64_t v)
{
	return (v + 63) & ~63ULL;
}

/* Sections with SHF_EXECINSTR become executable segments, those with SHT_NOTE note segments. */
static inline struct made_elf made_elf_new(const struct made_section *secs, size_t cnt)
{
	struct made_elf m = { .data = calloc(1, MADE_BYTES_CAP) };
	Elf64_Ehdr *eh = (Elf64_Ehdr *)m.data;
	uint64_t pos = sizeof(*eh) + MADE_SECTIONS_CAP * sizeof(Elf64_Phdr);
	char names[1024] = "";
	size_t names_len = 1, i;

	m.ehdr = eh;
	memcpy(eh->e_ident, ELFMAG, SELFMAG);
	eh->e_ident[EI_CLASS] = ELFCLASS64;
	eh->e_ident[EI_DATA] = ELFDATA2LSB;
	eh->e_ident[EI_VERSION] = EV_CURRENT;
	eh->e_type = ET_DYN;
	eh->e_machine = EM_X86_64;
	eh->e_ehsize = sizeof(*eh);
	eh->e_phoff = sizeof(*eh);
	eh->e_phentsize = sizeof(Elf64_Phdr);
	eh->e_shentsize = sizeof(Elf64_Shdr);
	eh->e_shnum = (Elf64_Half)(cnt + 2);
	eh->e_shstrndx = (Elf64_Half)(cnt + 1);
	m.phdrs = (Elf64_Phdr *)(m.data + eh->e_phoff);
	eh->e_shoff = made_align(pos);
	m.shdrs = (Elf64_Shdr *)(m.data + eh->e_shoff);
	pos = made_align(eh->e_shoff + (cnt + 2) * sizeof(Elf64_Shdr));
	for (i = 0; i < cnt; i++) {
		Elf64_Shdr *sh = &m.shdrs[i + 1];

		sh->sh_name = (Elf64_Word)names_len;
		memcpy(names + names_len, secs[i].name, strlen(secs[i].name) + 1);
		names_len += strlen(secs[i].name) + 1;
		sh->sh_type = secs[i].type;
		sh->sh_link = secs[i].link;
		sh->sh_info = secs[i].info;
		sh->sh_flags = secs[i].flags;
		sh->sh_offset = pos;
		sh->sh_addr = secs[i].flags & SHF_ALLOC ? pos + MADE_BIAS : 0;
		sh->sh_size = secs[i].bytes;
		sh->sh_entsize = secs[i].entry_bytes;
		if (secs[i].data)
			memcpy(m.data + pos, secs[i].data, secs[i].bytes);
		if (secs[i].flags & SHF_EXECINSTR || secs[i].type == SHT_NOTE)
			m.phdrs[eh->e_phnum++] =
				(Elf64_Phdr){ .p_type =
						      secs[i].type == SHT_NOTE ? PT_NOTE : PT_LOAD,
					      .p_flags = PF_R | PF_X,
					      .p_offset = pos,
					      .p_vaddr = pos + MADE_BIAS,
					      .p_filesz = secs[i].bytes,
					      .p_memsz = secs[i].bytes,
					      .p_align = 4 };
		if (secs[i].type != SHT_NOBITS)
			pos = made_align(pos + secs[i].bytes);
	}
	m.shdrs[cnt + 1] =
		(Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = pos, .sh_size = names_len };
	memcpy(m.data + pos, names, names_len);
	m.bytes = pos + names_len;
	return m;
}

static inline uint64_t made_elf_vaddr(const struct made_elf *m, size_t section)
{
	return m->shdrs[section].sh_offset + MADE_BIAS;
}

/* A symbol table under construction: section data for SHT_SYMTAB and its SHT_STRTAB. */
struct made_symtab {
	Elf64_Sym syms[8192];
	size_t cnt;
	char strs[262144];
	size_t str_bytes;
};

static inline void made_symtab_add(struct made_symtab *t, const char *name, int bind, int type,
				   uint64_t vaddr, uint64_t bytes, uint16_t shndx)
{
	if (!t->cnt) {
		t->cnt = 1;
		t->str_bytes = 1;
	}
	t->syms[t->cnt++] = (Elf64_Sym){ .st_name = (Elf64_Word)t->str_bytes,
					 .st_info = (unsigned char)ELF64_ST_INFO(bind, type),
					 .st_shndx = shndx,
					 .st_value = vaddr,
					 .st_size = bytes };
	memcpy(t->strs + t->str_bytes, name, strlen(name) + 1);
	t->str_bytes += strlen(name) + 1;
}

#endif
