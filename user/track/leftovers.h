/* SPDX-License-Identifier: MIT */
/*
 * leftovers.h - breakpoints in a process that its file does not have: those of a profiler that runs
 * too, or what one has left that was killed in the middle of an attach or detach.
 *
 * Nothing tells one from the other. To attach at their sites once more and to detach takes what was left
 * out, in every process, and leaves alone what somebody else has there (guardian_clean()).
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
	VEC(struct attach_site) sites; /* with cookie 0: hits of theirs do nothing */
};

/*
 * Looks at the functions that a profiler would probe (the allocator's, whole, and the places of
 * tags), as far as they are in this mapping, in the memory of the process of the thread tid. What cannot be
 * read has none. -ENOMEM.
 */
int leftovers_find(pid_t tid, const struct proc_map *map, const struct track_file *file,
		   struct leftovers *ret);

#endif
