/* SPDX-License-Identifier: MIT */
/* profile_symbols_priv.h - what profile_symbols.c is made of: the allocator's functions at the leaf. */
#ifndef HT_SYMBOL_PROFILE_SYMBOLS_PRIV_H
#define HT_SYMBOL_PROFILE_SYMBOLS_PRIV_H

#include <stdbool.h>

struct profile;

/* profile_trim.c: the allocator's own functions at the leaf end of a profile's stacks. */

/* Takes them off, those that were inlined as well. A stack that is the allocator's only stays whole. 0 or
 * -ENOMEM. */
int profile_trim_allocator(struct profile *p);
/* Has it stacks with them? Then whoever recorded it wants them. */
bool profile_has_allocator_leaf(const struct profile *p);

#endif
