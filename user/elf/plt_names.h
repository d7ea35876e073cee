/* SPDX-License-Identifier: MIT */
/*
 * plt_names.h - the imported function that a PLT stub or a GOT slot leads to.
 */
#ifndef HT_ELF_PLT_NAMES_H
#define HT_ELF_PLT_NAMES_H

#include <stdint.h>

#include "base/vec.h"

struct elf_file;

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

#endif
