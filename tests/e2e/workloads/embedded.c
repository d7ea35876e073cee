/* SPDX-License-Identifier: MIT */
/*
 * embedded.c - code that has an allocator of its own in the same file: a library (-DLIB), a program with that library
 * (-DPROGRAM), or a program in one piece (both), whose functions lie between the allocator's. -DPRE=acme_je_ gives
 * another prefix. Some of its code uses libc's malloc. E2E_COUNT times each.
 *
 * The allocator's functions call each other: calloc calls malloc, and realloc jumps to a function that calls it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef PRE
#define PRE mi_
#endif
#define GLUE2(a, b) a##b
#define GLUE(a, b) GLUE2(a, b)
#define OWN(name) GLUE(PRE, name)
#define HIDDEN __attribute__((visibility("hidden"), noinline))

enum { KEPT = 1009, LIBC = 1013, CLEARED = 1019, RESIZED = 2003 };

void embedded_work(long cnt);

#ifdef LIB
#define BETWEEN __attribute__((noinline)) static
#define KEEP_FRAME(p) __asm__ volatile("" : "+r"(p))
#define CHUNK_BYTES (16UL << 20)

static char *pos, *end;

HIDDEN int mi_version(void)
{
	return 2;
}

HIDDEN int OWN(mallctl)(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes)
{
	return !name + !old + !old_bytes + !new + !new_bytes;
}

HIDDEN size_t OWN(nallocx)(size_t bytes, int flags)
{
	return bytes + (size_t)flags;
}

/* Blocks have their size before them, and are never used again. Inlined, as in allocators: the first instruction of
 * malloc is one of this function. */
__attribute__((always_inline)) static inline void *fast_path(size_t bytes)
{
	size_t room = (bytes + 31) / 16 * 16;
	char *p;

	if (!pos || pos + room > end) {
		size_t chunk = room > CHUNK_BYTES ? room : CHUNK_BYTES;

		pos = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		end = pos + chunk;
	}
	p = pos + 16;
	memcpy(pos, &bytes, sizeof(bytes));
	pos += room;
	KEEP_FRAME(p);
	return p;
}

HIDDEN void *OWN(malloc)(size_t bytes)
{
	return fast_path(bytes);
}

BETWEEN void *site_kept(size_t bytes)
{
	void *p = OWN(malloc)(bytes);

	KEEP_FRAME(p);
	return p;
}

HIDDEN void *OWN(calloc)(size_t cnt, size_t bytes)
{
	void *p = OWN(malloc)(cnt * bytes);

	KEEP_FRAME(p);
	return p ? memset(p, 0, cnt * bytes) : NULL;
}

BETWEEN void *site_libc(size_t bytes)
{
	void *p = malloc(bytes);

	KEEP_FRAME(p);
	return p;
}

static volatile uintptr_t sink;

HIDDEN void OWN(free)(void *p)
{
	sink = (uintptr_t)p;
}

BETWEEN void *site_cleared(size_t bytes)
{
	void *p = OWN(calloc)(1, bytes);

	KEEP_FRAME(p);
	return p;
}

/* Of the allocator; realloc is not on the stack when this calls malloc. */
__attribute__((noinline)) static void *grow(void *p, size_t bytes)
{
	void *q = OWN(malloc)(bytes);
	size_t old = 0;

	KEEP_FRAME(q);
	if (p)
		memcpy(&old, (char *)p - 16, sizeof(old));
	if (p && q)
		memcpy(q, p, old < bytes ? old : bytes);
	return q;
}

HIDDEN void *OWN(realloc)(void *p, size_t bytes)
{
	return grow(p, bytes);
}

BETWEEN void *site_resized(void *p, size_t bytes)
{
	void *q = OWN(realloc)(p, bytes);

	KEEP_FRAME(q);
	return q;
}

/* Leaves cnt blocks of site_kept(), site_libc(), site_cleared() and site_resized(). */
void embedded_work(long cnt)
{
	for (long i = 0; i < cnt; i++) {
		site_kept(KEPT);
		OWN(free)(site_kept(KEPT));
		site_libc(LIBC);
		free(site_libc(LIBC));
		site_cleared(CLEARED);
		site_resized(site_kept(KEPT), RESIZED);
	}
}
#endif

#ifdef PROGRAM
#include "ledger.h"

int main(void)
{
	const char *text = getenv("E2E_COUNT");
	long cnt = text ? strtol(text, NULL, 10) : 101;

	e2e_ready();
	embedded_work(cnt);
	led_bulk("site_kept", KEPT, 3 * cnt, cnt);
	led_bulk("site_libc", LIBC, 2 * cnt, cnt);
	led_bulk("site_cleared", CLEARED, cnt, cnt);
	led_bulk("site_resized", RESIZED, cnt, cnt);
	e2e_done();
	return 0;
}
#endif
