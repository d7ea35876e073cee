/* SPDX-License-Identifier: MIT */
/*
 * nameless.c - a program with an allocator of its own, to be stripped: none of its functions has a name then. It has
 * jemalloc's messages. With -DPLAIN it exports malloc and free, and frees by another function, without a name. Work
 * goes on until the end: blocks of 1009 bytes, of which none is left.
 */
#include "ledger.h"

#include <sys/mman.h>

static const char *volatile messages[] = { "<jemalloc>: %s\n", "arenas.narenas" };

#ifdef PLAIN
#define EXPORTED __attribute__((visibility("default"), noinline))
#define MALLOC malloc
#define FREE free
#else
#define EXPORTED __attribute__((noinline)) static
#define MALLOC own_malloc
#define FREE own_free
#endif

static char *pos, *end;
static void *volatile freed;

EXPORTED void *MALLOC(size_t bytes)
{
	size_t room = (bytes + 31) / 16 * 16;

	if (!pos || pos + room > end) {
		pos = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
		end = pos + (64 << 20);
	}
	memcpy(pos, &bytes, sizeof(bytes));
	pos += room;
	return pos - room + 16;
}

EXPORTED void FREE(void *p)
{
	freed = p;
}

#ifdef PLAIN
EXPORTED void *calloc(size_t cnt, size_t bytes)
{
	return malloc(cnt * bytes);
}

EXPORTED void *realloc(void *p, size_t bytes)
{
	void *q = malloc(bytes);
	size_t old = 0;

	if (p)
		memcpy(&old, (char *)p - 16, sizeof(old));
	return p && q ? memcpy(q, p, old < bytes ? old : bytes) : q;
}
#endif

__attribute__((noinline)) static void sized_free(void *p, size_t bytes)
{
	memset(p, 0, bytes);
	freed = p;
}

int main(void)
{
	e2e_ready();
	for (int i = 0; i < 20011; i++)
		sized_free(memset(MALLOC(OPAQUE((size_t)1009)), 1, 1009), 1009);
	FREE(NULL);
	e2e_say(messages[0] && messages[1] ? "DONE\n" : "");
	e2e_wait_line();
	return 0;
}
