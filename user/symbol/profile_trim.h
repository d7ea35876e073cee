/* SPDX-License-Identifier: MIT */
/* profile_trim.h - the allocator's own functions at the leaf end of a profile's stacks. */
#ifndef HT_SYMBOL_PROFILE_TRIM_H
#define HT_SYMBOL_PROFILE_TRIM_H

#include <stdbool.h>

struct profile;

/* Takes them off, those that were inlined as well. A stack that is the allocator's only stays whole. 0 or
 * -ENOMEM. */
int profile_trim_allocator(struct profile *p);
/* Has it stacks with them? Then whoever recorded it wants them. */
bool profile_has_allocator_leaf(const struct profile *p);

#endif
