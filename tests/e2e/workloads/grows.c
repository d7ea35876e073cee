/* SPDX-License-Identifier: MIT */
/*
 * grows.c - holds as much as it is told to. Lines on stdin: "up N BYTES" allocates N blocks and
 * writes to all of each, "down N" frees the N newest, "exit CODE" and "abort" end it; the end of
 * stdin does, too. After each it says "HELD bytes blocks". Nothing else in it allocates.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCKS_CAP (1 << 20)

struct block {
	void *at;
	size_t bytes;
};

static struct block blocks[BLOCKS_CAP];
static size_t block_cnt, held_bytes;

static void say_held(const char *what)
{
	char line[96];
	int n = snprintf(line, sizeof(line), "%s %zu %zu\n", what, held_bytes, block_cnt);

	if (write(1, line, (size_t)n) != n)
		_exit(1);
}

__attribute__((noinline)) void site_up(size_t cnt, size_t bytes)
{
	for (; cnt && block_cnt < BLOCKS_CAP; cnt--) {
		void *p = malloc(bytes);

		if (!p)
			_exit(3);
		memset(p, 0x5a, bytes);
		blocks[block_cnt++] = (struct block){ p, bytes };
		held_bytes += bytes;
		/* Who is killed while it grows has said how far it came. */
		if (bytes >= 1 << 20)
			say_held("AT");
	}
}

static void down(size_t cnt)
{
	for (; cnt && block_cnt; cnt--) {
		held_bytes -= blocks[--block_cnt].bytes;
		free(blocks[block_cnt].at);
	}
}

/* Without stdio, which allocates. false: there are no more. */
static int read_line(char *line, size_t bytes)
{
	size_t used = 0;

	while (used + 1 < bytes && read(0, line + used, 1) == 1 && line[used] != '\n')
		used++;
	line[used] = '\0';
	return used > 0;
}

int main(void)
{
	char line[64];
	size_t cnt, bytes;

	say_held("READY");
	while (read_line(line, sizeof(line))) {
		if (sscanf(line, "up %zu %zu", &cnt, &bytes) == 2)
			site_up(cnt, bytes);
		else if (sscanf(line, "down %zu", &cnt) == 1)
			down(cnt);
		else if (sscanf(line, "exit %zu", &cnt) == 1)
			_exit((int)cnt);
		else if (!strcmp(line, "abort"))
			abort();
		say_held("HELD");
	}
	return 0;
}
