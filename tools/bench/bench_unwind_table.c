/* SPDX-License-Identifier: MIT */
/*
 * bench_unwind_table.c - how fast unwind tables are built, and how large they are.
 *
 *   bench_unwind_table [-n ROUNDS] FILE...
 *
 * Prints one line per file and one for all of them: median time of ROUNDS builds (each with a
 * fresh elf_file, so reading the file from the page cache is included), rows, bytes of frame
 * information per second, memory of the table, and the peak of the whole process.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "elf/elf_file.h"
#include "elf/unwind_table_priv.h"
#include "elf/unwind_table.h"

#define ROUNDS_DEFAULT 5
#define ROUNDS_CAP 1000

struct result {
	double time_ms; /* median */
	uint64_t frame_info_bytes, table_bytes;
	uint32_t fde_cnt, bad_fde_cnt, row_cnt, unsupported_row_cnt, page_cnt;
};

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void describe(struct elf_file *ef, const struct unwind_table *t, struct result *ret)
{
	struct cfi_section section;

	if (!unwind_eh_frame(ef, &section))
		ret->frame_info_bytes += section.bytes;
	if (!unwind_debug_frame(ef, &section))
		ret->frame_info_bytes += section.bytes;
	ret->table_bytes = (uint64_t)t->row_cnt * sizeof(*t->rows) +
			   (uint64_t)t->page_cnt * sizeof(*t->pages) + sizeof(*t);
	ret->fde_cnt = t->fde_cnt;
	ret->bad_fde_cnt = t->bad_fde_cnt;
	ret->row_cnt = t->row_cnt;
	ret->unsupported_row_cnt = t->unsupported_row_cnt;
	ret->page_cnt = t->page_cnt;
}

static int measure(const char *path, int rounds, struct result *ret)
{
	double times[ROUNDS_CAP] = { 0 };
	int i, err;

	for (i = 0; i < rounds; i++) {
		struct unwind_table *t = NULL;
		struct elf_file *ef = NULL;
		double start = now_ms();

		err = elf_file_open(path, &ef);
		if (!err)
			err = unwind_table_build(ef, NULL, &t);
		times[i] = now_ms() - start;
		if (!err && i == 0)
			describe(ef, t, ret);
		unwind_table_free(t);
		elf_file_close(ef);
		if (err)
			return err;
	}
	qsort(times, (size_t)rounds, sizeof(times[0]), by_value);
	ret->time_ms = times[rounds / 2];
	return 0;
}

static void print(const char *name, const struct result *r)
{
	const char *slash = strrchr(name, '/');

	printf("%-28.28s %8.2f %8.2f %7.0f %8u %5u %9u %8u %6.1f %8.1f\n", slash ? slash + 1 : name,
	       r->time_ms, (double)r->frame_info_bytes / 1e6,
	       (double)r->frame_info_bytes / 1e3 / r->time_ms, r->fde_cnt, r->bad_fde_cnt,
	       r->row_cnt, r->unsupported_row_cnt, (double)r->row_cnt / 1e3 / r->time_ms,
	       (double)r->table_bytes / 1e6);
}

static void add(struct result *sum, const struct result *r)
{
	sum->time_ms += r->time_ms;
	sum->frame_info_bytes += r->frame_info_bytes;
	sum->table_bytes += r->table_bytes;
	sum->fde_cnt += r->fde_cnt;
	sum->bad_fde_cnt += r->bad_fde_cnt;
	sum->row_cnt += r->row_cnt;
	sum->unsupported_row_cnt += r->unsupported_row_cnt;
	sum->page_cnt += r->page_cnt;
}

int main(int argc, char **argv)
{
	struct result sum = { 0 };
	struct rusage usage;
	int rounds = ROUNDS_DEFAULT, opt, failed = 0;

	while ((opt = getopt(argc, argv, "n:")) == 'n')
		rounds = (int)strtol(optarg, NULL, 10);
	if (opt != -1 || optind == argc || rounds < 1 || rounds > ROUNDS_CAP) {
		fprintf(stderr, "usage: %s [-n ROUNDS] FILE...\n", argv[0]);
		return 2;
	}
	printf("%-28s %8s %8s %7s %8s %5s %9s %8s %6s %8s\n", "file", "ms", "MB in", "MB/s", "FDEs",
	       "bad", "rows", "unsupp.", "Mrow/s", "MB table");
	for (; optind < argc; optind++) {
		struct result r = { 0 };
		int err = measure(argv[optind], rounds, &r);

		if (err) {
			printf("%-28.28s %s\n", argv[optind], strerror(-err));
			failed += err != -ENOENT;
			continue;
		}
		print(argv[optind], &r);
		add(&sum, &r);
	}
	if (sum.row_cnt)
		print("all", &sum);
	getrusage(RUSAGE_SELF, &usage);
	printf("peak memory of this process: %.1f MB\n", (double)usage.ru_maxrss / 1e3);
	return failed ? 1 : 0;
}
