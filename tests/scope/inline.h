/* SPDX-License-Identifier: MIT */
/*
 * inline.h - an inline function of C++ with a call site, in a program and in its library: the
 * dynamic linker may let both use one copy. Then its tag is that image's; what must not be is the
 * one's table with the other's record or remembered step.
 */
#ifndef SCOPE_INLINE_H
#define SCOPE_INLINE_H

#include "heaptap/scope.h"

inline int in_both(int (*check)(void))
{
	HEAPTAP_SCOPE("both");
	return check();
}

/* Of the library: pushes many tags of its own, then "lib", and calls in_both(check). */
int from_lib(int (*check)(void));
unsigned long lib_descriptor(void);

#endif
