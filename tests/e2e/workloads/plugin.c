/* SPDX-License-Identifier: MIT */
/* plugin.c - a library that is loaded late: it allocates, and keeps two of three blocks. */
#include <stdlib.h>

int plugin_work(int cnt, size_t size);

__attribute__((noinline)) static void *site_plugin(size_t size)
{
	void *p = malloc(size);

	__asm__ volatile("" : "+r"(p));
	return p;
}

/* Returns how many blocks are left. */
int plugin_work(int cnt, size_t size)
{
	int left = 0;

	for (int i = 0; i < cnt; i++) {
		void *p = site_plugin(size);

		if (i % 3 == 2)
			free(p);
		else
			left++;
	}
	return left;
}
