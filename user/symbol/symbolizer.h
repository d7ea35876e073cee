/* SPDX-License-Identifier: MIT */
/*
 * symbolizer.h - (file, vaddr) -> functions, files, lines, inlines.
 *
 * Files and debug information are not trusted, and DWARF readers leak by design: so the work runs in a forked
 * helper with rlimits and without privileges. Addresses that DWARF does not know fall back to the symbol table
 * (read in the helper as well), then to "module+0xvaddr". Every requested address gets at least one frame with
 * a name.
 */
#ifndef HT_SYMBOL_SYMBOLIZER_H
#define HT_SYMBOL_SYMBOLIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/symbol.h"

/* vaddr: of the instruction to look up (return address - 1), sorted, unique. */
int symbolize(const struct symbol_options *opts, const struct symbol_file *file,
	      const uint64_t *vaddr, size_t vaddr_cnt, struct symbol_result **ret);
void symbol_result_free(struct symbol_result *r);

/* demangle.c: C++ and Rust (legacy and v0). Returns a malloc'ed string, or NULL when name is not mangled. */
char *demangle(const char *name);

#endif
