/* SPDX-License-Identifier: MIT */
/* open_elf.h - files of made_elf.h, opened, and their symbols; all of it is there until the test ends. */
#ifndef HT_TESTS_OPEN_ELF_H
#define HT_TESTS_OPEN_ELF_H

#include "unit.h"

#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "made_elf.h"

static inline void release_elf_file(void *ef)
{
	elf_file_close(ef);
}

static inline void release_elf_symbols(void *symbols)
{
	elf_symbols_free(symbols);
}

static inline struct made_elf keep_elf(struct made_elf m)
{
	unit_keep(m.data, free);
	return m;
}

static inline struct elf_file *open_elf(const struct made_elf *m)
{
	struct elf_file *ef;

	assert_int_equal(elf_file_open_mem(m->data, m->bytes, &ef), 0);
	return unit_keep(ef, release_elf_file);
}

/* debug: NULL, there is no other file with symbols. */
static inline struct elf_symbols *load_symbols(struct elf_file *ef, struct elf_file *debug)
{
	struct elf_symbols *symbols;

	assert_int_equal(elf_symbols_load(ef, debug, &symbols), 0);
	return unit_keep(symbols, release_elf_symbols);
}

#endif
