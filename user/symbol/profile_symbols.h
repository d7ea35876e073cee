/* SPDX-License-Identifier: MIT */
/*
 * profile_symbols.h - names for a profile that came without: other allocators' dumps have only
 * addresses and the mappings of the process.
 */
#ifndef HT_SYMBOL_PROFILE_SYMBOLS_H
#define HT_SYMBOL_PROFILE_SYMBOLS_H

#include <stddef.h>

#include "symbol/symbolizer.h"

struct profile;

/*
 * Looks up every location that has no line in the file of its mapping, as it is on this machine
 * now: a dump does not say which version of a file it was made with. A file whose build id is
 * known and another is left alone, and so is what cannot be opened; *ret_missing (or NULL) is how
 * many files with locations those were. Where something was found, the allocator's own functions
 * are taken off the leaf end, as in a recorded profile. 0 or -ENOMEM.
 */
int profile_symbolize(struct profile *p, const struct symbol_options *opts, size_t *ret_missing);

#endif
