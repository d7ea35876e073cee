/* SPDX-License-Identifier: MIT */
/*
 * grown.c - holds 20 011 blocks before it says READY, then grows as it is told, by so many MiB: "live 48" blocks that it keeps,
 * "free 30" blocks that it frees and malloc keeps, "mapp 16" memory that it maps. "drop 5" frees 5 of the first blocks, "maps 5"
 * makes 5 mappings of a page, "pins 5" allocates 5 small blocks and frees all but every 32nd, "tiny 5" keeps 5 blocks of a
 * byte, "larg 5" keeps 5 of a MiB. It says what it holds.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST_CNT 20011
#define BLOCK_BYTES 1000
#define SMALL_BYTES 64
#define PINS_EACH 32
#define MIB (1ul << 20)

static void *first[FIRST_CNT];
static size_t first_cnt, kept_cnt;

static void *block(void)
{
	void *p = malloc(BLOCK_BYTES);

	if (!p)
		exit(1);
	return memset(p, 1, BLOCK_BYTES);
}

/* Keep every 256th block with free, so that what is free stays between blocks. */
static void allocate(size_t bytes, int is_freed)
{
	size_t cnt = bytes / BLOCK_BYTES;
	void **blocks = calloc(cnt, sizeof(*blocks));

	for (size_t i = 0; i < cnt; i++)
		blocks[i] = block();
	for (size_t i = 0; i < cnt && is_freed; i++)
		if (i % 256)
			free(blocks[i]);
	kept_cnt += is_freed ? (cnt + 255) / 256 : cnt;
	free(blocks);
}

static __attribute__((noinline)) void short_lived(void **blocks)
{
	for (size_t i = 1; i < PINS_EACH; i++)
		blocks[i] = malloc(SMALL_BYTES);
}

static __attribute__((noinline)) void pins_them(void **blocks)
{
	blocks[0] = malloc(SMALL_BYTES);
}

static void pin(size_t cnt)
{
	void **blocks = calloc(cnt + PINS_EACH, sizeof(*blocks));

	for (size_t i = 0; i < cnt; i += PINS_EACH) {
		pins_them(blocks + i);
		short_lived(blocks + i);
	}
	for (size_t i = 0; i < cnt; i++)
		memset(blocks[i], 1, SMALL_BYTES);
	for (size_t i = 0; i < cnt + PINS_EACH; i++)
		if (i % PINS_EACH)
			free(blocks[i]);
	free(blocks);
}

static void keep(size_t cnt, size_t bytes)
{
	for (; cnt--; kept_cnt++) {
		char *p = malloc(bytes);

		if (!p)
			exit(1);
		memset(p, 1, bytes);
	}
}

static void map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	memset(p, 1, bytes);
}

/* Neighbours that may do different things are no one mapping. */
static void map_pages(size_t cnt)
{
	const size_t page = 4096;
	char *p =
		mmap(NULL, cnt * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	memset(p, 1, cnt * page);
	for (size_t i = 1; i < cnt; i += 2)
		if (mprotect(p + i * page, page, PROT_READ))
			exit(1);
}

int main(void)
{
	char line[64];
	unsigned long number;

	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	setvbuf(stdout, NULL, _IOLBF, 4096);
	while (first_cnt < FIRST_CNT)
		first[first_cnt++] = block();
	puts("READY");
	while (fgets(line, sizeof(line), stdin) && strncmp(line, "end", 3) != 0) {
		number = strtoul(line + 5, NULL, 10);
		if (!strncmp(line, "live ", 5))
			allocate(number * MIB, 0);
		else if (!strncmp(line, "free ", 5))
			allocate(number * MIB, 1);
		else if (!strncmp(line, "pins ", 5))
			pin(number);
		else if (!strncmp(line, "tiny ", 5))
			keep(number, 1);
		else if (!strncmp(line, "larg ", 5))
			keep(number, MIB);
		else if (!strncmp(line, "mapp ", 5))
			map(number * MIB);
		else if (!strncmp(line, "maps ", 5))
			map_pages(number);
		else if (!strncmp(line, "drop ", 5))
			while (number-- && first_cnt)
				free(first[--first_cnt]);
		printf("DONE first %zu kept %zu\n", first_cnt, kept_cnt);
	}
	return 0;
}
