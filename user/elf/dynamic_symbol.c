/* SPDX-License-Identifier: MIT */
/* dynamic_symbol.c - see elf_symbols.h. */
#include "elf/elf_symbols.h"

#include <string.h>

#include "elf/elf_file.h"

static void note(const GElf_Sym *sym, struct dynamic_symbol *s)
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
	struct elf_symtab t;
	GElf_Sym sym;

	for (unsigned i = 0; i < cnt; i++)
		symbols[i] = (struct dynamic_symbol){ .name = symbols[i].name };
	if (!elf_file_symtab(ef, SHT_DYNSYM, &t))
		return;
	for (size_t at = 0; at < t.cnt; at++) {
		const char *name = elf_symtab_get(&t, at, &sym);

		for (unsigned i = 0; name && i < cnt; i++)
			if (!strcmp(name, symbols[i].name))
				note(&sym, &symbols[i]);
	}
}
