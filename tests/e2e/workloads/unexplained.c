/* SPDX-License-Identifier: MIT */
/*
 * unexplained.c - grows by 64 MiB in a way that what it holds does not explain. E2E_MODE=map: it maps memory; =file: it
 * maps a file, which is no growth; =unseen: blocks of an allocator that has no names (-DNAMELESS, and stripped); =kept: blocks that
 * it frees after some moments of a recording, of a pool that keeps them. And it holds 16 blocks of 4096 bytes in any case.
 */
#include "ledger.h"

#include <fcntl.h>
#include <sys/mman.h>

#define HIDDEN __attribute__((visibility("hidden"), noinline))

enum { GROWTH_BYTES = 64 << 20, BLOCK_BYTES = 1 << 20 };

#ifdef NAMELESS
static const char *volatile messages[] = { "<jemalloc>: %s\n", "arenas.narenas" };
#else
static const char *volatile messages[] = { "none" };
#endif
static char *pos, *end;
static void *volatile freed;

HIDDEN int mi_version(void)
{
	return 2;
}

HIDDEN void *mi_malloc(size_t bytes)
{
	if (!pos || pos + bytes > end) {
		pos = mmap(NULL, GROWTH_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
		end = pos + GROWTH_BYTES;
	}
	pos += bytes;
	return pos - bytes;
}

HIDDEN void mi_free(void *p)
{
	freed = p;
}

SITE void *site_kept(size_t bytes)
{
	return led_alloc(__func__, malloc(bytes), bytes);
}

/* Blocks are in use for a while. */
static void use_blocks(int is_kept)
{
	static void *blocks[GROWTH_BYTES / BLOCK_BYTES];
	const size_t cnt = sizeof(blocks) / sizeof(*blocks);

	for (size_t i = 0; i < cnt; i++)
		blocks[i] = memset(mi_malloc(BLOCK_BYTES), 1, BLOCK_BYTES);
	if (is_kept)
		return;
	usleep(1500000);
	for (size_t i = 0; i < cnt; i++)
		mi_free(blocks[i]);
}

static void map_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	char *p;

	if (fd < 0 || ftruncate(fd, GROWTH_BYTES))
		led_die("unexplained: no file\n");
	p = mmap(NULL, GROWTH_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		led_die("unexplained: the file cannot be mapped\n");
	memset(p, 1, GROWTH_BYTES);
}

int main(void)
{
	const char *mode = getenv("E2E_MODE");

	e2e_ready();
	for (int i = 0; i < 16; i++)
		site_kept(4096);
	if (!mode || !messages[0])
		led_die("unexplained: E2E_MODE is not set\n");
	if (!strcmp(mode, "map"))
		memset(mmap(NULL, GROWTH_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0),
		       1, GROWTH_BYTES);
	else if (!strcmp(mode, "file"))
		map_file(getenv("E2E_FILE"));
	else
		use_blocks(!strcmp(mode, "unseen"));
	usleep(700000);
	e2e_done();
	return 0;
}
