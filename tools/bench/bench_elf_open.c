/* SPDX-License-Identifier: MIT */
/*
 * bench_elf_open.c - what it costs to know what a file is: identity, segments, names of sections.
 *
 *   bench_elf_open FILE...
 *
 * Prints "open MS files CNT", CPU time of all files, a median of ROUNDS; the files are in the page cache.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "elf/elf_file.h"

#define ROUNDS 21

static volatile size_t seen; /* so that nothing is left out */

static double cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void look(int fd)
{
	char build_id_hex[2 * BUILD_ID_BYTES_CAP + 1];
	struct elf_file *ef;
	Elf_Scn *scn = NULL;
	size_t cnt;

	if (elf_file_open_fd(fd, &ef))
		return;
	while ((scn = elf_nextscn(elf_file_elf(ef), scn)))
		seen += strlen(elf_file_section_name(ef, scn));
	elf_file_build_id_hex(ef, build_id_hex);
	seen += (size_t)build_id_hex[0];
	seen += elf_file_soname(ef) != NULL;
	elf_file_segments(ef, &cnt);
	seen += cnt;
	elf_file_close(ef);
}

static double round_ms(char *const paths[], int cnt)
{
	double begin_ms = cpu_ms();

	for (int i = 0; i < cnt; i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			continue;
		look(fd);
		close(fd);
	}
	return cpu_ms() - begin_ms;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	double ms[ROUNDS];

	if (argc < 2) {
		fprintf(stderr, "usage: bench_elf_open FILE...\n");
		return 2;
	}
	for (int i = 0; i < ROUNDS; i++)
		ms[i] = round_ms(argv + 1, argc - 1);
	qsort(ms, ROUNDS, sizeof(*ms), by_value);
	printf("open %.2f files %d\n", ms[ROUNDS / 2], argc - 1);
	return 0;
}
