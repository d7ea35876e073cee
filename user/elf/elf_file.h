/* SPDX-License-Identifier: MIT */
/*
 * elf_file.h - one ELF file, read-only: identity, segments, sections.
 *
 * Everything in the file is somebody else's bytes: every offset and count is checked against the file's size, and a
 * broken file gives -ENOEXEC (or a missing section), never a crash.
 */
#ifndef HT_ELF_FILE_H
#define HT_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_budget;
struct elf_file;

#define BUILD_ID_BYTES_CAP 64

struct elf_segment {
	uint64_t vaddr, off, file_bytes, mem_bytes;
	bool is_exec, is_write;
};

struct elf_section {
	const uint8_t *data; /* unpacked, if the section was compressed (zlib or zstd) */
	size_t bytes;
	uint64_t vaddr;
};

/* fd is not consumed. -ENOEXEC: not a (sound) ELF file of this byte order. 32-bit files open too, so that
 * a caller can report them. */
int elf_file_open_fd(int fd, struct elf_file **ret);
int elf_file_open(const char *path, struct elf_file **ret);
/* The image (the vDSO, .gnu_debugdata) is copied. */
int elf_file_open_mem(const void *image, size_t bytes, struct elf_file **ret);
/* The same for an image found in the file `whole` (.gnu_debugdata), at the cost of `whole`, which must outlive it. */
int elf_file_open_part(const struct elf_file *whole, const void *image, size_t bytes,
		       struct elf_file **ret);
void elf_file_close(struct elf_file *ef);

/*
 * Pay for reading (elf_budget.h): one step for each round of a loop over what the file says, and bytes for a list of
 * what it has. false: too costly; end the loop as if the file ended.
 */
bool elf_file_step(const struct elf_file *ef, uint64_t cnt);
bool elf_file_fill(const struct elf_file *ef, uint64_t bytes);
const struct elf_budget *elf_file_budget(const struct elf_file *ef);
/* The file was too costly, or has more program headers than any program: not everything in it was looked at. */
bool elf_file_is_partly_read(const struct elf_file *ef);

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
/* A program without a loader, at a fixed address or not (static-pie). */
bool elf_file_is_static(const struct elf_file *ef);
/* PT_LOAD segments in file order. */
const struct elf_segment *elf_file_segments(const struct elf_file *ef, size_t *ret_cnt);
/* The segment whose memory contains vaddr, or NULL. */
const struct elf_segment *elf_file_segment_at(const struct elf_file *ef, uint64_t vaddr);

/* A program header of a type other than PT_LOAD. */
struct elf_program_head {
	uint64_t vaddr, off, file_bytes, mem_bytes, align;
};
/* The nth program header (from 0) of type (PT_*). -ENOENT. */
int elf_file_program_head(const struct elf_file *ef, uint32_t type, size_t nth,
			  struct elf_program_head *ret);

/*
 * Convert addresses by PT_LOAD. -ENOENT: no segment covers it. Mappings are whole pages: an offset just before a
 * segment, in its first page, gives the address at which it is mapped.
 */
int elf_file_off_to_vaddr(const struct elf_file *ef, uint64_t off, uint64_t *ret_vaddr);
/* The same for the first byte of an executable mapping. Linkers let segments share a page of the file (lld does), so
 * that byte may also belong to another segment. */
int elf_file_code_vaddr(const struct elf_file *ef, uint64_t off, uint64_t *ret_vaddr);
int elf_file_vaddr_to_off(const struct elf_file *ef, uint64_t vaddr, uint64_t *ret_off);
/*
 * The bytes at vaddr that the file holds; *ret_bytes is how many follow, at most ELF_AT_BYTES (for more, use a section
 * or another call). NULL: none.
 */
#define ELF_AT_BYTES (1 << 20)
const uint8_t *elf_file_at(const struct elf_file *ef, uint64_t vaddr, size_t *ret_bytes);
/* Exactly `bytes` bytes at vaddr, inside one segment, or NULL. */
const uint8_t *elf_file_read(const struct elf_file *ef, uint64_t vaddr, uint64_t bytes);

/* Return 0 or -ENOENT, -ENOEXEC (damaged), -EFBIG (decompressed size over the bound). Owned by ef. A section without
 * bytes in the file (SHT_NOBITS: .bss, or anything in a split-off debug file) is -ENOENT. */
int elf_file_section(struct elf_file *ef, const char *name, struct elf_section *ret);

/* The section table; empty when it was stripped or is damaged. The index is that of the file. */
struct elf_section_head {
	const char *name; /* "" when it has none */
	uint32_t type, link, info; /* SHT_*, sh_link, sh_info */
	uint64_t flags, vaddr, off, bytes, entry_bytes;
};
const struct elf_section_head *elf_file_section_heads(const struct elf_file *ef, size_t *ret_cnt);
/* elf_file_section() by index. */
int elf_file_section_at(struct elf_file *ef, size_t idx, struct elf_section *ret);

/* The first value of a tag (DT_*) in PT_DYNAMIC. -ENOENT. */
int elf_file_dynamic(const struct elf_file *ef, int64_t tag, uint64_t *ret_val);

#endif
