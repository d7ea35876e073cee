/* SPDX-License-Identifier: MIT */
/*
 * elf_file.h - one ELF file, mapped read-only: identity, segments, sections.
 *
 * Everything in the file is somebody else's bytes: every offset and count is checked against the
 * file's size, and a broken file gives -ENOEXEC (or a missing section), never a crash.
 */
#ifndef HT_ELF_ELF_FILE_H
#define HT_ELF_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;

#define BUILD_ID_BYTES_CAP 64

struct elf_segment {
	uint64_t vaddr, off, file_bytes, mem_bytes;
	bool is_exec, is_write;
};

struct elf_section {
	const uint8_t *data; /* decompressed when the section was compressed (zlib or zstd) */
	size_t bytes;
	uint64_t vaddr;
};

/* fd is not consumed. -ENOEXEC: not a (sound) ELF file of this byte order. */
int elf_file_open_fd(int fd, struct elf_file **ret);
int elf_file_open(const char *path, struct elf_file **ret);
/* image is copied (the vDSO, .gnu_debugdata). */
int elf_file_open_mem(const void *image, size_t bytes, struct elf_file **ret);
void elf_file_close(struct elf_file *ef);

/* EM_*, and ELFCLASS32 / ELFCLASS64. */
int elf_file_machine(const struct elf_file *ef);
bool elf_file_is_64(const struct elf_file *ef);
/* ET_EXEC, ET_DYN, ... */
int elf_file_type(const struct elf_file *ef);
/* Bytes of the GNU build id, NULL when there is none. */
const uint8_t *elf_file_build_id(const struct elf_file *ef, size_t *ret_bytes);
/* Lower-case hex into buf (2 * BUILD_ID_BYTES_CAP + 1), "" when there is none. */
void elf_file_build_id_hex(const struct elf_file *ef, char *buf);
const char *elf_file_interp(const struct elf_file *ef); /* PT_INTERP or NULL */
const char *elf_file_soname(const struct elf_file *ef); /* DT_SONAME or NULL */
bool elf_file_is_go(const struct elf_file *ef);
/* PT_LOAD segments in file order. */
const struct elf_segment *elf_file_segments(const struct elf_file *ef, size_t *ret_cnt);

/* Address arithmetic over PT_LOAD. -ENOENT: no segment covers it. */
int elf_file_off_to_vaddr(const struct elf_file *ef, uint64_t off, uint64_t *ret_vaddr);
int elf_file_vaddr_to_off(const struct elf_file *ef, uint64_t vaddr, uint64_t *ret_off);
/* Bytes at vaddr that the file holds; *ret_bytes is how many follow. NULL: none. */
const uint8_t *elf_file_at(const struct elf_file *ef, uint64_t vaddr, size_t *ret_bytes);

/* 0 or -ENOENT, -ENOEXEC (damaged), -EFBIG (decompressed size over the bound). Owned by ef. */
int elf_file_section(struct elf_file *ef, const char *name, struct elf_section *ret);

/* The whole image. */
const uint8_t *elf_file_image(const struct elf_file *ef, size_t *ret_bytes);

#endif
