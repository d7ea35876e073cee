/* SPDX-License-Identifier: MIT */
/*
 * elsewhere.c - a program that is recorded where its symbols are not: a name in the symbol table only, a line,
 * and a function that is inlined. Ends by itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *kept[64];

/* The name of the inlined function and these lines are in the debug information alone. */
static inline __attribute__((always_inline)) void *inlined_keeper(size_t bytes)
{
	void *p = malloc(bytes); /* line: inlined_keeper */

	if (p)
		memset(p, 1, bytes);
	return p;
}

static __attribute__((noinline)) void static_site(size_t i)
{
	kept[i] = inlined_keeper(1009);
	__asm__ volatile("" ::: "memory");
}

int main(void)
{
	for (size_t i = 0; i < 64; i++)
		static_site(i);
	printf("%p\n", kept[63]);
	return 0;
}
