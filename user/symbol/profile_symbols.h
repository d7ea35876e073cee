/* SPDX-License-Identifier: MIT */
/*
 * profile_symbols.h - names for a profile that came without: other allocators' dumps have only
 * addresses and the mappings of the process.
 */
#ifndef HT_SYMBOL_PROFILE_SYMBOLS_H
#define HT_SYMBOL_PROFILE_SYMBOLS_H

#include <stdbool.h>
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

/* One file of a profile, after it was looked for. */
struct profile_symbol_file {
	const char *path, *build_id_hex;
	size_t wanted_cnt,
		named_cnt; /* locations that had no lines, and that were given names or lines */
	bool is_found; /* somewhere: the file, or its debug information */
};

/* Where files are looked for by build id, in this order, before and after where they were recorded. */
struct profile_symbol_places {
	const char *const *dirs; /* build_id_files.h */
	size_t dir_cnt;
	/* The nth file (from 0) that others have of a build id: 0 its debug information. An fd, -ENOENT, or
	 * -ERANGE: there are no more. NULL: nobody is asked. */
	int (*fetch)(void *ctx, const char *build_id_hex, unsigned nth);
	void (*on_file)(void *ctx, const struct profile_symbol_file *file); /* or NULL */
	void *ctx;
};

/*
 * The same for a profile that was recorded elsewhere, where names, lines or both were not to be had: what
 * has no line is looked up in any file of the same build id, and gets what says more than was there. A
 * file without a build id is taken from its own place, as profile_symbolize() does. Allocator's functions
 * that come up at the leaf end are taken off, unless the profile has such. 0 or -ENOMEM.
 */
int profile_symbolize_elsewhere(struct profile *p, const struct symbol_options *opts,
				const struct profile_symbol_places *places);

#endif
