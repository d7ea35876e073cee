/* SPDX-License-Identifier: MIT */
/*
 * jit_areas.h - memory of a process with code made at run time.
 *
 * Such code is in executable memory without a file, or of a file that is not ELF (memfd,
 * /dev/zero). Compilers that keep memory either writable or executable make it non-executable while
 * they write, and threads may be inside it meanwhile. So an area counts until it is unmapped, or
 * something else is mapped there.
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

/* Can this mapping hold such code, if it is executable? */
bool jit_can_be_in(const struct proc_map *m, const struct track_files *files);
/* Update from all mappings of the process, after its files are known. 0 or -ENOMEM. */
int jit_areas_update(struct jit_areas *a, const struct proc_maps *maps,
		     const struct track_files *files);
void jit_areas_release(struct jit_areas *a);

#endif
