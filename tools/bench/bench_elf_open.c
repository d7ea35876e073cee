/* SPDX-License-Identifier: MIT */
/*
 * bench_elf_open.c - what it costs to know what a file is: identity, segments, names of sections; by heaptap's reader
 * and by libelf, of the same files.
 *
 *   bench_elf_open FILE...
 *
 * Prints "ours MS libelf MS FILES", CPU time of all files, medians of ROUNDS; both have the files in the page cache.
 */
#include <fcntl.h>
#include <gelf.h>
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

static void ours(int fd)
{
	const struct elf_section_head *heads;
	struct elf_file *ef;
	size_t cnt;

	if (elf_file_open_fd(fd, &ef))
		return;
	heads = elf_file_section_heads(ef, &cnt);
	for (size_t i = 0; i < cnt; i++)
		seen += strlen(heads[i].name);
	elf_file_build_id(ef, &cnt);
	seen += cnt;
	seen += elf_file_soname(ef) != NULL;
	elf_file_segments(ef, &cnt);
	seen += cnt;
	elf_file_close(ef);
}

static void note_build_id(Elf *elf, const GElf_Phdr *ph)
{
	Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)ph->p_offset, ph->p_filesz, ELF_T_NHDR);
	size_t name_off, desc_off;
	GElf_Nhdr note;

	for (size_t off = 0; data && off < data->d_size &&
			     (off = gelf_getnote(data, off, &note, &name_off, &desc_off));)
		if (note.n_type == NT_GNU_BUILD_ID)
			seen += note.n_descsz;
}

static void note_soname(Elf *elf, const GElf_Phdr *ph)
{
	Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)ph->p_offset, ph->p_filesz, ELF_T_DYN);
	GElf_Dyn dyn;

	for (int i = 0; data && gelf_getdyn(data, i, &dyn) && dyn.d_tag != DT_NULL; i++)
		seen += dyn.d_tag == DT_SONAME;
}

static void theirs(int fd)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	Elf_Scn *section = NULL;
	size_t cnt = 0, names;
	GElf_Phdr ph;
	GElf_Shdr sh;

	if (!elf)
		return;
	elf_getphdrnum(elf, &cnt);
	for (int i = 0; (size_t)i < cnt && gelf_getphdr(elf, i, &ph); i++) {
		if (ph.p_type == PT_NOTE)
			note_build_id(elf, &ph);
		else if (ph.p_type == PT_DYNAMIC)
			note_soname(elf, &ph);
		seen += ph.p_type == PT_LOAD;
	}
	while (!elf_getshdrstrndx(elf, &names) && (section = elf_nextscn(elf, section))) {
		const char *name =
			gelf_getshdr(section, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;

		seen += name ? strlen(name) : 0;
	}
	elf_end(elf);
}

static double round_ms(void (*look)(int fd), char *const paths[], int cnt)
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
	double ours_ms[ROUNDS], theirs_ms[ROUNDS];

	if (argc < 2 || elf_version(EV_CURRENT) == EV_NONE) {
		fprintf(stderr, "usage: bench_elf_open FILE...\n");
		return 2;
	}
	for (int i = 0; i < ROUNDS; i++) {
		ours_ms[i] = round_ms(ours, argv + 1, argc - 1);
		theirs_ms[i] = round_ms(theirs, argv + 1, argc - 1);
	}
	qsort(ours_ms, ROUNDS, sizeof(*ours_ms), by_value);
	qsort(theirs_ms, ROUNDS, sizeof(*theirs_ms), by_value);
	printf("ours %.2f libelf %.2f files %d\n", ours_ms[ROUNDS / 2], theirs_ms[ROUNDS / 2],
	       argc - 1);
	return 0;
}
