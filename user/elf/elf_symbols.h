/* SPDX-License-Identifier: MIT */
/*
 * elf_symbols.h - address -> symbol, in a sorted array.
 *
 * Merged from .symtab, .dynsym, .gnu_debugdata (xz-compressed "mini debug info") and the PLT (`malloc@plt`, from
 * .rela.plt). One entry per address: preferably a function, then global before weak before local, then the shortest
 * name.
 */
#ifndef HT_ELF_SYMBOLS_H
#define HT_ELF_SYMBOLS_H

#include "base/std.h"
#include "base/vec.h"

struct elf_file;
struct elf_symbols;

struct elf_symbol {
	uint64_t vaddr;
	uint64_t bytes; /* 0 = unknown: reaches to the next symbol */
	const char *name; /* linkage name without @version, owned by the table */
	bool is_plt;
	/* Only elf_symbols_each() sets these. */
	bool is_local; /* STB_LOCAL */
	bool is_exported; /* in .dynsym, and another file's symbol of that name may take its place */
};

/* Find the symbol tables. Cheap: they are sorted when an address is first looked up. debug may be NULL or a separate
 * debug file with the same build id; its .symtab is merged in. Both files must outlive the table. */
int elf_symbols_load(struct elf_file *ef, struct elf_file *debug, struct elf_symbols **ret);
void elf_symbols_free(struct elf_symbols *s);
/* The symbol that covers vaddr, or NULL (also for a gap between two symbols of known size). */
const struct elf_symbol *elf_symbols_find(const struct elf_symbols *s, uint64_t vaddr);
/* All symbols, sorted by vaddr. */
const struct elf_symbol *elf_symbols_all(const struct elf_symbols *s, size_t *ret_cnt);

/*
 * Call fn for all *defined functions*, every alias, in no order, until it returns non-zero (which is then
 * returned). One pass over everything: use it to look for many names. sym->name lives as long as the table or until
 * fn returns, whichever is sooner.
 */
int elf_symbols_each(const struct elf_symbols *s,
		     int (*fn)(void *ctx, const struct elf_symbol *sym), void *ctx);

/*
 * plt_names.c: the imported function that a PLT stub or a GOT slot leads to.
 */

struct plt_stub {
	uint64_t vaddr;
	uint32_t bytes;
	const char *name; /* name of the import, without "@plt"; points into ef */
};
/* A GOT slot that the loader fills with the address of an import. */
struct plt_slot {
	uint64_t vaddr;
	const char *name;
};
struct plt_stubs {
	VEC(struct plt_stub) stubs; /* sorted by vaddr */
	VEC(struct plt_slot) slots; /* sorted by vaddr */
};

/* ret is zero-initialised by the caller. Returns 0 also when there is no PLT or the machine is not known; -ENOMEM. */
int plt_names_read(struct elf_file *ef, struct plt_stubs *ret);
void plt_names_release(struct plt_stubs *p);
/* The import behind a stub, or behind a slot; NULL: vaddr is neither. */
const char *plt_names_at(const struct plt_stubs *p, uint64_t vaddr);

/* Whether a file exports a name or imports it. One pass over its dynamic symbols. */

struct dynamic_symbol {
	const char *name;
	bool is_defined, is_wanted; /* wanted: from another file */
	uint64_t vaddr; /* where it is defined */
};

/* Fill all members except the names. */
void dynamic_symbols_find(struct elf_file *ef, struct dynamic_symbol *symbols, unsigned cnt);

/*
 * tls_symbol.c: where a thread-local variable of a file is in a thread.
 *
 * Sources: "ELF Handling For Thread-Local Storage" (variants I and II), the TLS descriptors paper
 * ("Thread-Local Storage Descriptors for IA32 and AMD64/EM64T"), and the psABI supplements for
 * the relocation numbers.
 */

enum tls_place {
	/* At the thread pointer + off: the variable is in the executable. */
	TLS_PLACE_OFFSET,
	/* slot_vaddr: a word that holds the offset from the thread pointer. */
	TLS_PLACE_OFFSET_SLOT,
	/* slot_vaddr: a TLS descriptor, {resolver, argument}. */
	TLS_PLACE_DESC_SLOT,
	/* slot_vaddr: {module id, offset in the module's block}. */
	TLS_PLACE_MODULE_SLOT,
};

struct tls_symbol {
	enum tls_place place;
	/* The slot belongs to the variable. Otherwise it belongs to another variable of the file: its module id is
	 * right, and its offset is that of block offset slot_block_off. */
	bool is_own_slot;
	uint64_t slot_vaddr;
	int64_t off; /* TLS_PLACE_OFFSET only */
	int64_t block_off; /* offset of the variable in the file's TLS block */
	int64_t slot_block_off; /* the same of the slot's variable */
};

/*
 * -ENOENT: the file has no such variable. -ENODATA: the file is a library and has it, but nothing in the file tells
 * where its block is (no relocation for any thread-local variable).
 */
int tls_symbol_find(struct elf_file *ef, const char *name, struct tls_symbol *ret);

/* The initial value of a 4-byte variable that the file defines; used for ABI version numbers. -ENOENT. */
int elf_data_symbol_u32(struct elf_file *ef, const char *name, uint32_t *ret);

#endif
