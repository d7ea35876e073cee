/* SPDX-License-Identifier: MIT */
/*
 * profile_copy.h - makes a profile of some rows of another: it copies only the locations, functions and strings
 * that they need, but all mappings (the first one is the program). Pure.
 */
#ifndef HT_PUSH_PROFILE_COPY_H
#define HT_PUSH_PROFILE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct profile;

struct profile_copy {
	const struct profile *from;
	struct profile *to; /* owned by this struct until profile_copy_take() */
	uint32_t *functions, *locations; /* from's index -> to's index + 1 */
	VEC(uint32_t) stack;
	bool names_all; /* a location without lines gets one: "module+0xvaddr" */
};

/* Begin a copy with sample types, period, times and mappings of `from`, which must stay. Its notes are left out,
 * and the types of what is in use when that is unknown. */
int profile_copy_begin(struct profile_copy *c, const struct profile *from, bool names_all);
/* Return the profile; c is then as after release. */
struct profile *profile_copy_take(struct profile_copy *c);
void profile_copy_release(struct profile_copy *c);

/* Copy a stack into c->stack, as indexes in c->to. */
int profile_copy_stack(struct profile_copy *c, const uint32_t *locs, size_t cnt);
/* Return the index of a location that is no address, such as "[other]". -ENOMEM. */
int64_t profile_copy_named(struct profile_copy *c, const char *name);
/* Return a text of `from` as a string of c->to. */
int64_t profile_copy_str(struct profile_copy *c, int64_t id);

#endif
