/* SPDX-License-Identifier: MIT */
/* plugin_own.c - as plugin.c, but with an allocator of its own inside. */
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define HIDDEN __attribute__((visibility("hidden"), noinline))
#define CHUNK_BYTES (16UL << 20)

int plugin_work(int cnt, size_t size);

static char *pos, *end;
static volatile uintptr_t sink;

HIDDEN int mi_version(void)
{
	return 2;
}

HIDDEN void *mi_malloc(size_t bytes)
{
	char *p;

	bytes = (bytes + 15) / 16 * 16;
	if (!pos || pos + bytes > end) {
		pos = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
		end = pos + CHUNK_BYTES;
	}
	p = pos;
	pos += bytes;
	return p;
}

HIDDEN void mi_free(void *p)
{
	sink = (uintptr_t)p;
}

__attribute__((noinline)) static void *site_plugin(size_t size)
{
	void *p = mi_malloc(size);

	__asm__ volatile("" : "+r"(p));
	return p;
}

int plugin_work(int cnt, size_t size)
{
	int left = 0;

	for (int i = 0; i < cnt; i++) {
		void *p = site_plugin(size);

		if (i % 3 == 2)
			mi_free(p);
		else
			left++;
	}
	return left;
}
