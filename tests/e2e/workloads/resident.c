/* SPDX-License-Identifier: MIT */
/*
 * resident.c - grows by 32 MiB as it is told: "malloc" that it keeps, "freed" that malloc keeps when it is freed, "map"
 * that is its own. It holds 1 MiB of malloc besides.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GROWTH_BYTES (32 << 20)
#define BLOCK_BYTES (64 << 10)
#define CNT (GROWTH_BYTES / BLOCK_BYTES)

static void *blocks[CNT];

static void grow(const char *how)
{
	void *map;

	if (!strcmp(how, "map")) {
		map = mmap(NULL, GROWTH_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
		if (map == MAP_FAILED)
			exit(1);
		memset(map, 1, GROWTH_BYTES);
		return;
	}
	for (size_t i = 0; i < CNT; i++) {
		blocks[i] = malloc(BLOCK_BYTES);
		memset(blocks[i], 1, BLOCK_BYTES);
	}
}

int main(int argc, char **argv)
{
	char line[64], *more;

	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	setvbuf(stdout, NULL, _IOLBF, 4096);
	puts("READY");
	while (argc > 1 && fgets(line, sizeof(line), stdin) && strncmp(line, "end", 3) != 0) {
		if (!strncmp(line, "free", 4)) {
			for (size_t i = 0; i < CNT; i++)
				free(blocks[i]);
		} else {
			more = malloc(1 << 20);
			memset(more, 1, 1 << 20);
			grow(argv[1]);
		}
		puts("DONE");
	}
	return 0;
}
