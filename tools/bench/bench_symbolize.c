/* SPDX-License-Identifier: MIT */
/*
 * bench_symbolize.c - how long symbolize() takes for N addresses of a file, and the memory that
 * its helper needs.
 *
 *	bench_symbolize FILE [ADDRESSES [ROUNDS]]
 *
 * Addresses are random in .text (always the same ones). Cold: the file's pages were dropped from
 * the page cache before. With DWARF, then with symbols only. One line of JSON for each kind:
 * seconds (of several rounds the median), peak memory of the helper (file pages included).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "elf/elf_file.h"
#include "symbol/symbol.h"

#define ROUNDS_CAP 99

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double now_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Sorted, unique; returns how many, 0 when the file has no .text. */
static size_t choose_addresses(int fd, uint64_t *vaddr, size_t cnt)
{
	struct elf_section text;
	struct elf_file *ef;
	size_t kept = 0;

	if (elf_file_open_fd(fd, &ef))
		return 0;
	if (elf_file_section(ef, ".text", &text) == 0 && text.bytes) {
		srand48(1);
		for (size_t i = 0; i < cnt; i++)
			vaddr[i] = text.vaddr + (uint64_t)(drand48() * (double)text.bytes);
		qsort(vaddr, cnt, sizeof(*vaddr), compare_u64);
		for (size_t i = 0; i < cnt; i++)
			if (!kept || vaddr[kept - 1] != vaddr[i])
				vaddr[kept++] = vaddr[i];
	}
	elf_file_close(ef);
	return kept;
}

struct round {
	double seconds;
	size_t with_line_cnt, frame_cnt;
	char note[128];
};

static int run_round(int fd, const char *name, bool lines, const uint64_t *vaddr, size_t cnt,
		     struct round *ret)
{
	struct symbol_options opts = { .lines = lines, .demangle = true };
	struct symbol_file file = { .fd = fd, .name = name, .build_id_hex = "", .root = "" };
	struct symbol_result *r;
	double start = now_seconds();
	int err = symbolize(&opts, &file, vaddr, cnt, &r);

	if (err)
		return err;
	ret->seconds = now_seconds() - start;
	ret->frame_cnt = r->first[cnt];
	ret->with_line_cnt = 0;
	for (size_t i = 0; i < cnt; i++)
		ret->with_line_cnt += r->frames[r->first[i]].line != 0;
	snprintf(ret->note, sizeof(ret->note), "%s", r->note);
	symbol_result_free(r);
	return 0;
}

/* In a child, so that the peak memory of the helpers is that of this kind only. */
static int run_kind(int fd, const char *name, const char *kind, const uint64_t *vaddr, size_t cnt,
		    int round_cnt)
{
	bool lines = strstr(kind, "dwarf"), is_cold = strstr(kind, "cold");
	double seconds[ROUNDS_CAP];
	struct round r = { 0 };
	struct rusage usage;
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return -errno;
	if (pid > 0)
		return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -EIO;
	for (int i = 0; i < round_cnt; i++) {
		if (is_cold && (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)))
			_exit(1);
		if (run_round(fd, name, lines, vaddr, cnt, &r))
			_exit(1);
		seconds[i] = r.seconds;
	}
	qsort(seconds, (size_t)round_cnt, sizeof(*seconds), compare_double);
	getrusage(RUSAGE_CHILDREN, &usage);
	printf("{\"bench\":\"symbolize\",\"kind\":\"%s\",\"addresses\":%zu,\"frames\":%zu,"
	       "\"with_line\":%zu,\"seconds\":%.3f,\"helper_peak_mib\":%.1f,\"note\":\"%s\"}\n",
	       kind, cnt, r.frame_cnt, r.with_line_cnt, seconds[round_cnt / 2],
	       (double)usage.ru_maxrss / 1024, r.note);
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = { "dwarf-cold", "dwarf-warm", "symbols-cold",
					     "symbols-warm" };
	size_t cnt = argc > 2 ? strtoul(argv[2], NULL, 10) : 5000;
	long round_cnt = argc > 3 ? strtol(argv[3], NULL, 10) : 5;
	uint64_t *vaddr;
	int fd, err = 0;

	if (argc < 2 || cnt == 0 || round_cnt < 1 || round_cnt > ROUNDS_CAP) {
		fprintf(stderr, "usage: bench_symbolize FILE [ADDRESSES [ROUNDS]]\n");
		return 2;
	}
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	vaddr = calloc(cnt, sizeof(*vaddr));
	if (fd < 0 || !vaddr) {
		fprintf(stderr, "bench: cannot read '%s': %s\n", argv[1], strerror(errno));
		return 1;
	}
	cnt = choose_addresses(fd, vaddr, cnt);
	if (!cnt) {
		fprintf(stderr, "bench: '%s' is no ELF file with a .text\n", argv[1]);
		return 1;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !err; i++)
		err = run_kind(fd, argv[1], kinds[i], vaddr, cnt, (int)round_cnt);
	free(vaddr);
	close(fd);
	return err ? 1 : 0;
}
