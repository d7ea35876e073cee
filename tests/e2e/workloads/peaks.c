/* SPDX-License-Identifier: MIT */
/*
 * peaks.c - holds 100 kB, then 10 MB more, waits, holds 30 MB more, and frees all but the 100 kB:
 *
 *	peaks [WAIT_MS [leave]]
 *
 * With "leave" it ends with all of it. Says PEAK and the most that it held at once. Attached to, it works when it reads
 * a line, and ends at the next.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TABLE_CNT 100
#define TABLE_BYTES 1000
#define FIRST_CNT 10
#define MOST_CNT 30
#define BLOCK_BYTES 1000000

static void *table[TABLE_CNT], *first[FIRST_CNT], *most[MOST_CNT];

static __attribute__((noinline)) void fill_table(void)
{
	for (int i = 0; i < TABLE_CNT; i++)
		table[i] = malloc(TABLE_BYTES);
}

static __attribute__((noinline)) void hold_first(void)
{
	for (int i = 0; i < FIRST_CNT; i++)
		first[i] = malloc(BLOCK_BYTES);
}

static __attribute__((noinline)) void hold_most(void)
{
	for (int i = 0; i < MOST_CNT; i++)
		most[i] = malloc(BLOCK_BYTES);
}

static void let_go(void)
{
	for (int i = 0; i < FIRST_CNT; i++)
		free(first[i]);
	for (int i = 0; i < MOST_CNT; i++)
		free(most[i]);
}

/* Without a FILE, whose buffer would be one more block. */
static void say(const char *text)
{
	if (write(1, text, strlen(text)) < 0)
		exit(1);
}

static void await_line(void)
{
	char c = 0;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

int main(int argc, char **argv)
{
	int is_driven = argc > 1 && !strcmp(argv[1], "driven");
	useconds_t wait_us = argc > 1 && !is_driven ? 1000 * (useconds_t)atoi(argv[1]) : 0;
	char text[64];

	if (is_driven) {
		say("READY\n");
		await_line();
	}
	fill_table();
	hold_first();
	usleep(wait_us);
	hold_most();
	if (argc <= 2)
		let_go();
	snprintf(text, sizeof(text), "PEAK %d\n",
		 TABLE_CNT * TABLE_BYTES + (FIRST_CNT + MOST_CNT) * BLOCK_BYTES);
	say(text);
	if (is_driven) {
		say("DONE\n");
		await_line();
	}
	return 0;
}
