/* SPDX-License-Identifier: MIT */
/* dynamic_symbol.c - see dynamic_symbol.h. */
#include "elf/dynamic_symbol.h"

#include <elf.h>
#include <string.h>

#include "elf/elf_file.h"

static void note(const Elf64_Sym *sym, struct dynamic_symbol *s)
{
	if (sym->st_shndx == SHN_UNDEF) {
		s->is_wanted = true;
		return;
	}
	s->is_defined = true;
	s->vaddr = sym->st_value;
}

void dynamic_symbols_find(struct elf_file *ef, struct dynamic_symbol *symbols, unsigned cnt)
{
	struct elf_section syms, strs;
	Elf64_Sym sym;

	for (unsigned i = 0; i < cnt; i++)
		symbols[i] = (struct dynamic_symbol){ .name = symbols[i].name };
	if (!elf_file_is_64(ef) || elf_file_section(ef, ".dynsym", &syms) ||
	    elf_file_section(ef, ".dynstr", &strs))
		return;
	for (size_t at = 0; at + sizeof(sym) <= syms.bytes; at += sizeof(sym)) {
		memcpy(&sym, syms.data + at, sizeof(sym));
		for (unsigned i = 0; i < cnt; i++) {
			size_t bytes = strlen(symbols[i].name) + 1;

			if (sym.st_name < strs.bytes && strs.bytes - sym.st_name >= bytes &&
			    !memcmp(strs.data + sym.st_name, symbols[i].name, bytes))
				note(&sym, &symbols[i]);
		}
	}
}
