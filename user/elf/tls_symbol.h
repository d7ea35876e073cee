/* SPDX-License-Identifier: MIT */
/*
 * tls_symbol.h - where a thread-local variable of a file is in a thread.
 *
 * Sources: "ELF Handling For Thread-Local Storage" (variants I and II), the TLS descriptors paper
 * ("Thread-Local Storage Descriptors for IA32 and AMD64/EM64T"), and the psABI supplements for
 * the relocation numbers.
 */
#ifndef HT_ELF_TLS_SYMBOL_H
#define HT_ELF_TLS_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

struct elf_file;

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
