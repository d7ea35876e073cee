/* SPDX-License-Identifier: MIT */
/* find_symbol.h - a function of a file by its name. */
#ifndef TEST_FIND_SYMBOL_H
#define TEST_FIND_SYMBOL_H

#include "elf/elf_symbols.h"

/* Of elf_symbols_each(), so all aliases are searched. -ENOENT. ret->name is the name that was passed. */
int find_symbol(const struct elf_symbols *s, const char *name, struct elf_symbol *ret);

#endif
