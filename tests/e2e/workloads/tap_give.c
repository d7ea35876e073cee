/* SPDX-License-Identifier: MIT */
/* tap_give - a library for tap_two: allocates by the C library that it was linked to. */
#include <stdlib.h>

void *give_block(size_t bytes);

void *give_block(size_t bytes)
{
	return malloc(bytes);
}
