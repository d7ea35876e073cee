/* SPDX-License-Identifier: MIT */
/* file_symbols.h - names of places in a file that a process maps, or in code made at run time. */
#ifndef HT_TRACK_FILE_SYMBOLS_H
#define HT_TRACK_FILE_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "symbol/symbol.h"

struct track_file;

/* As symbolize(). module: what the file is called where there is no name; NULL: as its path. */
int file_symbolize(const struct symbol_options *opts, const struct track_file *file,
		   const char *module, const uint64_t *vaddr, size_t cnt,
		   struct symbol_result **ret);

#endif
