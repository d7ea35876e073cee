/* SPDX-License-Identifier: MIT */
/* dynamic_symbol.h - does a file export a name, or ask for it? One pass over its dynamic symbols. */
#ifndef HT_ELF_DYNAMIC_SYMBOL_H
#define HT_ELF_DYNAMIC_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

struct elf_file;

struct dynamic_symbol {
	const char *name;
	bool is_defined, is_wanted; /* from another file */
	uint64_t vaddr; /* where it is defined */
};

/* Fills all but the names. */
void dynamic_symbols_find(struct elf_file *ef, struct dynamic_symbol *symbols, unsigned cnt);

#endif
