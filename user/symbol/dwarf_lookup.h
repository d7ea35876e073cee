/* SPDX-License-Identifier: MIT */
/*
 * dwarf_lookup.h - functions, inlines and lines of many addresses from DWARF, in one pass.
 *
 * Made for a batch: all addresses are known at the start, so only what they need is indexed. Runs in the helper
 * process only: libdw keeps what it reads, so the handle is closed and opened again when it has grown past a
 * bound.
 */
#ifndef HT_SYMBOL_DWARF_LOOKUP_H
#define HT_SYMBOL_DWARF_LOOKUP_H

#include "base/std.h"

/* Deeper inlines are cut (the outermost ones are lost last). */
#define DWARF_FRAMES_CAP 128

/* libdw cannot go on without memory: the process ends at once with this status. */
#define DWARF_EXIT_NO_MEMORY 3

struct dwarf_lookup;

struct dwarf_frame {
	const char *name; /* DW_AT_name, NULL = the DWARF does not know the function */
	const char *qualified_name; /* with namespaces and types where known; or NULL */
	const char *linkage_name; /* NULL = none */
	const char *file; /* NULL = unknown */
	uint32_t line; /* 0 = unknown */
	uint32_t start_line;
	uint64_t range_vaddr; /* of the outermost frame: start of the function, or of its part */
};

/* Frames of vaddr[addr_idx], innermost first. Valid during the call only. */
typedef int (*dwarf_emit_fn)(void *ctx, size_t addr_idx, const struct dwarf_frame *frames,
			     size_t frame_cnt);

/*
 * fd holds the DWARF (the ELF file itself or its debug file), alt_fd the file that dwz moved
 * common parts into (-1 = none). Neither is consumed; both must stay open.
 * -ENOENT: no DWARF in it. -ENOEXEC: damaged.
 */
int dwarf_lookup_open(int fd, int alt_fd, uint64_t memory_bound_bytes, struct dwarf_lookup **ret);
void dwarf_lookup_free(struct dwarf_lookup *dl);
/*
 * Call emit once for each vaddr (sorted, unique) that the DWARF knows something about; others are left out.
 * Returns 0, or emit's result when that was not 0, or -ENOMEM.
 */
int dwarf_lookup_run(struct dwarf_lookup *dl, const uint64_t *vaddr, size_t vaddr_cnt,
		     dwarf_emit_fn emit, void *ctx);
/* Are there units whose functions are in .dwo files? These are not read: names come from the symbols. */
bool dwarf_lookup_is_split(const struct dwarf_lookup *dl);

#endif
