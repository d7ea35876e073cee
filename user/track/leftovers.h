/* SPDX-License-Identifier: MIT */
/*
 * leftovers.h - breakpoints in a process that are not in its file: those of a profiler that runs
 * now, or those left by one that was killed in the middle of an attach or detach.
 *
 * The two look the same. Attaching at their sites and detaching again takes leftovers out, in every
 * process, and leaves others' live breakpoints alone (guardian_clean()).
 */
#ifndef HT_TRACK_LEFTOVERS_H
#define HT_TRACK_LEFTOVERS_H

#include <sys/types.h>

#include "base/vec.h"
#include "kernel/attach.h"

struct proc_map;
struct track_file;

struct leftovers {
	const struct track_file *file;
	VEC(struct attach_site) sites; /* with cookie 0: their hits do nothing */
};

/*
 * Search the functions that a profiler would probe (the allocator's, whole, and the places of
 * tags), as far as they are in this mapping, in the memory of the process of the thread tid.
 * What is beside other changed bytes belongs to a patch of somebody else and is left alone.
 * Unreadable memory has no leftovers. -ENOMEM.
 */
int leftovers_find(pid_t tid, const struct proc_map *map, const struct track_file *file,
		   struct leftovers *ret);

#endif
