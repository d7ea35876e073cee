/* SPDX-License-Identifier: MIT */
/*
 * profile_symbols.h - names for a profile without names: other allocators' dumps have only addresses and the
 * mappings of the process.
 */
#ifndef HT_SYMBOL_PROFILE_SYMBOLS_H
#define HT_SYMBOL_PROFILE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

#include "symbol/symbol.h"

struct profile;

/*
 * Look up every location without a line in the file of its mapping, as the file is on this machine now: a dump
 * does not say with which version of a file it was made. Files with a known but different build id are left
 * alone, and so are files that cannot be opened; *ret_missing (or NULL) is the number of such files with
 * locations. Where names were found, the allocator's own functions are removed from the leaf end, as in a
 * recorded profile. 0 or -ENOMEM.
 */
int profile_symbolize(struct profile *p, const struct symbol_options *opts, size_t *ret_missing);

/* One file of a profile, after the search for it. */
struct profile_symbol_file {
	const char *path, *build_id_hex;
	size_t wanted_cnt,
		named_cnt; /* locations without lines; of these, the ones that got names or lines */
	bool is_found; /* the file, or its debug information, was found somewhere */
};

/* Where to look for files by build id, in this order, before and after the place where they were recorded. */
struct profile_symbol_places {
	const char *const *dirs; /* folders of collected files */
	size_t dir_cnt;
	/* The nth file (from 0) that servers have for a build id: 0 is its debug information. An fd, -ENOENT,
	 * or -ERANGE: there are no more. NULL: nobody is asked. */
	int (*fetch)(void *ctx, const char *build_id_hex, unsigned nth);
	void (*on_file)(void *ctx, const struct profile_symbol_file *file); /* or NULL */
	void *ctx;
};

/*
 * The same for a profile that was recorded elsewhere, without names, lines or both: a location without a line
 * is looked up in any file of the same build id, and gets a result that says more than it had. A file without a
 * build id is read from its own place, as in profile_symbolize(). Allocator functions that appear at the leaf
 * end are removed, unless the profile had such already. 0 or -ENOMEM.
 */
int profile_symbolize_elsewhere(struct profile *p, const struct symbol_options *opts,
				const struct profile_symbol_places *places);

#endif
