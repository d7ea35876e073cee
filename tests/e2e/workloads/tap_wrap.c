/* SPDX-License-Identifier: MIT */
/*
 * tap_wrap - a library that wraps the allocator: counts, and calls the next one, as libraries for debugging and accounting
 * do. To be preloaded, once or several times. With -DTAIL its calls are jumps where the compiler likes.
 */
#include <dlfcn.h>
#include <stddef.h>

#define BOOT_BYTES 65536
#ifdef TAIL
#define COUNTED(call) return (call_cnt++, call)
#else
#define COUNTED(call)         \
	void *block = (call); \
	call_cnt++;           \
	return block
#endif

unsigned long call_cnt __attribute__((visibility("hidden")));
static void *(*next_malloc)(size_t), *(*next_calloc)(size_t, size_t),
	*(*next_realloc)(void *, size_t);
static void (*next_free)(void *);
static char boot[BOOT_BYTES]; /* for dlsym() itself */
static size_t boot_at;

__attribute__((constructor)) static void find_next(void)
{
	next_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
	next_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
	next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
	next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
}

static void *of_boot(size_t bytes)
{
	void *block = boot + boot_at;

	boot_at += (bytes + 15) & ~15UL;
	return boot_at <= BOOT_BYTES ? block : NULL;
}

void *malloc(size_t bytes)
{
	if (!next_malloc)
		find_next();
	if (!next_malloc)
		return of_boot(bytes);
	COUNTED(next_malloc(bytes));
}

void *calloc(size_t cnt, size_t bytes)
{
	if (!next_calloc)
		return of_boot(cnt * bytes);
	COUNTED(next_calloc(cnt, bytes));
}

void *realloc(void *old, size_t bytes)
{
	if (!next_realloc)
		find_next();
	COUNTED(next_realloc(old, bytes));
}

void free(void *block)
{
	if ((char *)block >= boot && (char *)block < boot + BOOT_BYTES)
		return;
	if (!next_free)
		find_next();
	call_cnt--;
	next_free(block);
}
