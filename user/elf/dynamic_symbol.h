/* SPDX-License-Identifier: MIT */
/* dynamic_symbol.h - whether a file exports a name or imports it. One pass over its dynamic symbols. */
#ifndef HT_ELF_DYNAMIC_SYMBOL_H
#define HT_ELF_DYNAMIC_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

struct elf_file;

struct dynamic_symbol {
	const char *name;
	bool is_defined, is_wanted; /* wanted: from another file */
	uint64_t vaddr; /* where it is defined */
};

/* Fill all members except the names. */
void dynamic_symbols_find(struct elf_file *ef, struct dynamic_symbol *symbols, unsigned cnt);

#endif
