/* SPDX-License-Identifier: MIT */
/* profile_symbols_priv.h - internal part of profile_symbols.c: the allocator's functions at the leaf. */
#ifndef HT_SYMBOL_PROFILE_SYMBOLS_PRIV_H
#define HT_SYMBOL_PROFILE_SYMBOLS_PRIV_H

#include <stdbool.h>

struct profile;

/* profile_trim.c: the allocator's own functions at the leaf end of a profile's stacks. */

/* Remove them, inlined ones as well. A stack of allocator functions only stays whole. 0 or -ENOMEM. */
int profile_trim_allocator(struct profile *p);
/* Does it have stacks with them? Then the recording was made to keep them. */
bool profile_has_allocator_leaf(const struct profile *p);

#endif
