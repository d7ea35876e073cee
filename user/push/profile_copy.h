/* SPDX-License-Identifier: MIT */
/*
 * profile_copy.h - a profile made of some rows of another: only the locations, functions and
 * strings that they need come along, all mappings do (the first one is the program). Pure.
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
	struct profile *to; /* owned until profile_copy_take() */
	uint32_t *functions, *locations; /* from's index -> to's index + 1 */
	VEC(uint32_t) stack;
	bool names_all; /* a location without lines gets one: "module+0xvaddr" */
};

/* With sample types, period, times and mappings of `from`, which must stay; without its comments, and
 * without the types of what is in use when that is not known. */
int profile_copy_begin(struct profile_copy *c, const struct profile *from, bool names_all);
/* The profile; c is as after release. */
struct profile *profile_copy_take(struct profile_copy *c);
void profile_copy_release(struct profile_copy *c);

/* The stack in c->to's indexes, in c->stack. */
int profile_copy_stack(struct profile_copy *c, const uint32_t *locs, size_t cnt);
/* A location that is no address, such as "[other]": its index. -ENOMEM. */
int64_t profile_copy_named(struct profile_copy *c, const char *name);
/* Text of `from` as a string of c->to. */
int64_t profile_copy_str(struct profile_copy *c, int64_t id);

#endif
