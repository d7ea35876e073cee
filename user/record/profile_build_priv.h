/* SPDX-License-Identifier: MIT */
/* profile_build_priv.h - a part of profile_build.c: stacks of a snapshot -> locations of a profile. */
#ifndef HT_RECORD_PROFILE_BUILD_PRIV_H
#define HT_RECORD_PROFILE_BUILD_PRIV_H

#include "base/std.h"
#include "base/vec.h"
#include "record/profile_build.h"

struct profile_stacks;
struct track_instance;

struct location_list {
	VEC(uint32_t) loc; /* indexes of the profile's locations */
};

/*
 * Read the stacks of the snapshot, and add their mappings, functions and locations to p. The executable of main
 * is the first mapping (NULL: none). All arguments must outlive it. 0, -ENOMEM, or why the stacks
 * cannot be read.
 */
int profile_stacks_new(const struct snapshot *s, struct engine *e, const struct track_files *files,
		       const struct profile_build_options *opts, const struct track_instance *main,
		       struct profile *p, struct profile_stacks **ret);
/* NULL is fine. */
void profile_stacks_free(struct profile_stacks *ps);
/* Append the locations of a stack, leaf first, without the allocator's frames unless these are kept. -ENOMEM. */
int profile_stacks_append(struct profile_stacks *ps, uint64_t stack_id, struct location_list *to);

#endif
