/* SPDX-License-Identifier: MIT */
/*
 * plt_names.h - which imported function a PLT stub jumps to.
 */
#ifndef HT_ELF_PLT_NAMES_H
#define HT_ELF_PLT_NAMES_H

#include <stdint.h>

#include "base/vec.h"

struct elf_file;

struct plt_stub {
	uint64_t vaddr;
	uint32_t bytes;
	const char *name; /* of the import, without "@plt"; points into ef */
};
struct plt_stubs {
	VEC(struct plt_stub) stubs;
};

/* Appends to ret. 0 also when there is no PLT or the machine is not known; -ENOMEM. */
int plt_names_read(struct elf_file *ef, struct plt_stubs *ret);

#endif
