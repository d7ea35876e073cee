/* SPDX-License-Identifier: MIT */
/*
 * elf_file_priv.h - shared by the files of elf_file.h and debug_only.c.
 */
#ifndef HT_ELF_FILE_PRIV_H
#define HT_ELF_FILE_PRIV_H

#include <elf.h>

#include "elf/elf_budget.h"
#include "elf/elf_file.h"
#include "elf/elf_image.h"

#define STRING_BYTES_CAP 4096

/* Loadable segments by address; of those that begin together, the first in the file comes last. */
struct elf_segment_key {
	uint64_t vaddr;
	uint64_t reach_vaddr; /* highest end of this segment and all before it */
	uint32_t idx; /* in segments */
};

struct elf_file {
	struct elf_image *im;
	struct elf_budget *budget; /* own_budget, or that of the file that contains this one */
	struct elf_budget own_budget;
	bool is_cut; /* there are more program headers than were read */
	Elf64_Ehdr eh; /* of either class, widened to 64 bits */
	struct elf_segment *segments;
	struct elf_segment_key *segment_keys;
	size_t segment_cnt;
	Elf64_Phdr *phdrs;
	size_t phdr_cnt;
	struct elf_section_head *sections;
	uint8_t **unpacked; /* per section: decompressed data or NULL */
	size_t *unpacked_bytes;
	size_t section_cnt;
	uint8_t build_id[BUILD_ID_BYTES_CAP];
	size_t build_id_bytes;
	const char *interp, *soname;
	bool is_go;
};

/* The bytes [off, off + bytes) of the file, or NULL. */
const void *elf_bytes(const struct elf_file *ef, uint64_t off, uint64_t bytes);
/* A NUL-terminated string of at most STRING_BYTES_CAP in [off, end), or NULL. */
const char *elf_string(const struct elf_file *ef, uint64_t off, uint64_t end);
/* Read section header i of either class. False: outside the file. */
bool elf_read_shdr(const struct elf_file *ef, uint64_t i, Elf64_Shdr *ret);
/* Read the program headers; -ENOEXEC: damaged. */
int elf_read_segments(struct elf_file *ef);
/* Read the section table; if damaged, it is empty. 0 or -ENOMEM. */
int elf_read_sections(struct elf_file *ef);

#endif
