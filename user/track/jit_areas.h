/* SPDX-License-Identifier: MIT */
/*
 * jit_areas.h - where a process has code that it made at run time.
 *
 * That is executable memory without a file, or of a file that is no ELF file (memfd, /dev/zero).
 * Compilers that keep their memory either writable or executable take the right to execute away
 * while they write, and the threads that are in it then are in it still: an area counts until it is
 * unmapped, or something else is mapped there.
 */
#ifndef HT_TRACK_JIT_AREAS_H
#define HT_TRACK_JIT_AREAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct proc_map;
struct proc_maps;
struct track_files;

struct jit_area {
	uint64_t start_addr, end_addr;
};

struct jit_areas {
	VEC(struct jit_area) area; /* in order, not touching one another */
};

/* Can there be such code, in a mapping that may be executed? */
bool jit_can_be_in(const struct proc_map *m, const struct track_files *files);
/* From all mappings of the process, after its files have become known. 0 or -ENOMEM. */
int jit_areas_update(struct jit_areas *a, const struct proc_maps *maps,
		     const struct track_files *files);
void jit_areas_release(struct jit_areas *a);

#endif
