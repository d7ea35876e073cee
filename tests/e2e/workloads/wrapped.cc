/* SPDX-License-Identifier: MIT */
/* wrapped.cc - what a program does through a library that wraps the allocator: each way to allocate a
 * known number of times (E2E_COUNT), a fifth of it kept. */
#include "ledger.h"

#include <malloc.h>
#include <new>

static long cnt = 1000;
static void *volatile sink;

#define WORK(name, size, alloc, release)                                    \
	__attribute__((noinline)) static void site_##name(void)             \
	{                                                                   \
		for (long i = 0; i < cnt; i++) {                            \
			void *p = (alloc);                                  \
                                                                            \
			sink = p;                                           \
			if (i % 5)                                          \
				release(p);                                 \
		}                                                           \
		__asm__ volatile("");                                       \
		led_bulk("site_" #name, size, cnt, cnt / 5);                \
	}

static void *by_posix(size_t size)
{
	void *p = NULL;

	return posix_memalign(&p, 64, size) ? NULL : p;
}

WORK(malloc, 1000, malloc(1000), free)
WORK(calloc, 1008, calloc(8, 126), free)
WORK(realloc, 1016, realloc(malloc(40), 1016), free)
WORK(memalign, 1024, memalign(64, 1024), free)
WORK(aligned_alloc, 1088, aligned_alloc(64, 1088), free)
WORK(posix_memalign, 1032, by_posix(1032), free)
WORK(new, 1040, ::operator new(1040), ::operator delete)
WORK(new_array, 1048, ::operator new[](1048), ::operator delete[])

int main(int argc, char **argv)
{
	if (argc > 1)
		cnt = strtol(argv[1], NULL, 10);
	free(malloc(1)); /* the wrapper has found what it wraps */
	free(calloc(1, 1));
	::operator delete(::operator new(1));
	::operator delete[](::operator new[](1));
	free(memalign(64, 64));
	free(aligned_alloc(64, 64));
	free(by_posix(64));
	free(realloc(NULL, 8));
	e2e_ready();
	site_malloc();
	site_calloc();
	site_realloc();
	led_bulk("site_realloc", 40, cnt, 0);
	site_memalign();
	site_aligned_alloc();
	site_posix_memalign();
	site_new();
	site_new_array();
	e2e_done();
	return 0;
}
