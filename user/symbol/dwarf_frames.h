/* SPDX-License-Identifier: MIT */
/*
 * dwarf_frames.h - from a function's DIE down to the inlined calls that cover an address.
 */
#ifndef HT_SYMBOL_DWARF_FRAMES_H
#define HT_SYMBOL_DWARF_FRAMES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/dwarf_lines.h"
#include "symbol/dwarf_lookup.h"
#include "symbol/dwarf_scopes.h"

struct dwarf_frames_context {
	struct line_table *lines; /* of the function's unit */
	struct dwarf_scopes *scopes;
	bool is_relocatable; /* code may be at address 0 */
};

/* A walk over the ranges of a DIE, from all zeros. */
struct dwarf_range {
	Dwarf_Addr low, high; /* [low, high) */
	ptrdiff_t pos;
	Dwarf_Addr base; /* libdw's, from one entry of a list to the next */
};

/*
 * To the next range; false at the end. Ranges of functions that the linker threw
 * away start at 0 (or 1, behind a range list's terminator) and are passed over: nothing is loaded
 * there.
 */
bool dwarf_next_range(bool is_relocatable, Dwarf_Die *die, struct dwarf_range *range);

/* Frames of vaddr, innermost first, into DWARF_FRAMES_CAP of them; returns how many (at least 1).
 * Strings live as long as lines, scopes and the Dwarf handle. */
size_t dwarf_frames_build(const struct dwarf_frames_context *c, Dwarf_Die *function, uint64_t vaddr,
			  struct dwarf_frame *frames);

#endif
