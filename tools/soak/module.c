/* SPDX-License-Identifier: MIT */
/* module.c - a library that is loaded and unloaded; see churn.c. Leaves nothing behind. */
#include <stdlib.h>

int module_work(int cnt, size_t bytes);

int module_work(int cnt, size_t bytes)
{
	int failed_cnt = 0;

	for (int i = 0; i < cnt; i++) {
		void *block = malloc(bytes);

		__asm__ volatile("" : "+r"(block));
		failed_cnt += !block;
		free(block);
	}
	return failed_cnt;
}
