/* SPDX-License-Identifier: MIT */
/*
 * elf_symbols.h - address -> symbol, in a sorted array.
 *
 * Merged from .symtab, .dynsym, .gnu_debugdata (xz-compressed "mini debug info") and the PLT
 * (`malloc@plt`, from .rela.plt). One entry per address: global before weak before local, a
 * function before anything else, shortest name last resort.
 */
#ifndef HT_ELF_SYMBOLS_H
#define HT_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;
struct elf_symbols;

struct elf_symbol {
	uint64_t vaddr;
	uint64_t bytes; /* 0 = unknown: reaches to the next symbol */
	const char *name; /* linkage name without @version, owned by the table */
	bool is_plt;
	bool is_local; /* STB_LOCAL; set by elf_symbols_each() */
};

/* Cheap: finds the tables; they are sorted when an address is first looked up.
 * debug may be NULL or a separate debug file of the same build id, whose .symtab is merged in.
 * Both files must outlive the table. */
int elf_symbols_load(struct elf_file *ef, struct elf_file *debug, struct elf_symbols **ret);
void elf_symbols_free(struct elf_symbols *s);
/* The symbol that covers vaddr, or NULL (also between two symbols whose sizes are known). */
const struct elf_symbol *elf_symbols_find(const struct elf_symbols *s, uint64_t vaddr);
/* Sorted by vaddr. */
const struct elf_symbol *elf_symbols_all(const struct elf_symbols *s, size_t *ret_cnt);

/*
 * All *defined functions*, every alias, in no order, until fn returns non-zero (which is then
 * returned). One pass over everything: what looks for many names uses this. sym->name lives as
 * long as the table or until fn returns, whichever is sooner.
 */
int elf_symbols_each(const struct elf_symbols *s,
		     int (*fn)(void *ctx, const struct elf_symbol *sym), void *ctx);

#endif
