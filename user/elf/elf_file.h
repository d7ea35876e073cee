/* SPDX-License-Identifier: MIT */
/*
 * elf_file.h - one ELF file, read-only: libelf, for files that are somebody else's.
 *
 * Headers and tables are read with libelf (gelf_getshdr(), gelf_getsym(), elf_strptr(), ...). Here is what libelf does
 * not have: identity, addresses, and a limit on what a file may cost. Every offset and count is checked against the
 * file's size, and a broken file gives -ENOEXEC (or a missing section), never a crash.
 */
#ifndef HT_ELF_FILE_H
#define HT_ELF_FILE_H

#include <gelf.h>

#include "base/std.h"

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

struct elf_symtab {
	Elf *elf;
	Elf_Data *syms;
	size_t cnt, names_idx;
};

/* fd is not consumed. -ENOEXEC: not a (sound) ELF file of this byte order. 32-bit files open too, so that
 * a caller can report them, but without their sections. */
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

/*
 * For elf_nextscn(), gelf_getshdr(), gelf_getphdr() and the like. The contents of a section are zeros until one of the
 * functions below has read them; so no elf_getdata(), which would also copy, convert and unpack without limit.
 */
Elf *elf_file_elf(const struct elf_file *ef);
/* "" when it has none, or scn is NULL. */
const char *elf_file_section_name(const struct elf_file *ef, Elf_Scn *scn);
/* The first section of that name that has bytes in the file (not SHT_NOBITS: .bss, or anything in a split-off debug
 * file), or NULL. */
Elf_Scn *elf_file_find(const struct elf_file *ef, const char *name);
/* elf_rawdata(), of a section that has bytes in the file, or NULL. */
Elf_Data *elf_file_data(const struct elf_file *ef, Elf_Scn *scn);
/* The contents of the section of that name. -ENOENT, -ENOEXEC (damaged), -EFBIG (too much when unpacked), -ENOMEM. */
int elf_file_section(struct elf_file *ef, const char *name, struct elf_section *ret);

/* The symbols of the first section of a type (SHT_SYMTAB, SHT_DYNSYM), and their names. false: none, or damaged. */
bool elf_file_symtab(const struct elf_file *ef, uint32_t type, struct elf_symtab *ret);
/* The name of symbol idx < cnt; NULL: it has none. */
const char *elf_symtab_get(const struct elf_symtab *t, size_t idx, GElf_Sym *ret);

/* Call fn for each note of a section (from_segments: of a PT_NOTE) until it returns non-zero, which is then
 * returned. The name is note->n_namesz bytes, the description note->n_descsz. */
typedef int elf_note_fn(void *ctx, const GElf_Nhdr *note, const char *name, const uint8_t *desc);
int elf_file_each_note(const struct elf_file *ef, bool from_segments, elf_note_fn *fn, void *ctx);

const GElf_Ehdr *elf_file_ehdr(const struct elf_file *ef);
bool elf_file_is_64(const struct elf_file *ef);
/* The GNU build id in lower-case hex into buf (2 * BUILD_ID_BYTES_CAP + 1), "" when there is none. */
void elf_file_build_id_hex(const struct elf_file *ef, char *buf);
/* "" for more than BUILD_ID_BYTES_CAP bytes. */
void elf_build_id_to_hex(const uint8_t *id, size_t bytes, char *buf);
const char *elf_file_interp(const struct elf_file *ef); /* PT_INTERP or NULL */
const char *elf_file_soname(const struct elf_file *ef); /* DT_SONAME or NULL */
bool elf_file_is_go(const struct elf_file *ef);
/* A program without a loader, at a fixed address or not (static-pie). */
bool elf_file_is_static(const struct elf_file *ef);
/* The first program header of a type (PT_*). */
bool elf_file_phdr(const struct elf_file *ef, uint32_t type, GElf_Phdr *ret);
/* The first value of a tag (DT_*) in PT_DYNAMIC. -ENOENT. */
int elf_file_dynamic(const struct elf_file *ef, int64_t tag, uint64_t *ret_val);

/* PT_LOAD segments in file order. */
const struct elf_segment *elf_file_segments(const struct elf_file *ef, size_t *ret_cnt);
/* The first segment whose memory contains vaddr, or NULL. */
const struct elf_segment *elf_file_segment_at(const struct elf_file *ef, uint64_t vaddr);
/*
 * Convert addresses by PT_LOAD. -ENOENT: no segment covers it. Mappings are whole pages: an offset just before a
 * segment, in its first page, gives the address at which it is mapped.
 */
int elf_file_off_to_vaddr(const struct elf_file *ef, uint64_t off, uint64_t *ret_vaddr);
/* The same for the first byte of an executable mapping. Linkers let segments share a page of the file (lld does), so
 * that byte may also belong to another segment. */
int elf_file_code_vaddr(const struct elf_file *ef, uint64_t off, uint64_t *ret_vaddr);
int elf_file_vaddr_to_off(const struct elf_file *ef, uint64_t vaddr, uint64_t *ret_off);
/* The bytes at vaddr that the file holds, at most max; *ret_bytes: how many. NULL: none. */
const uint8_t *elf_file_at(const struct elf_file *ef, uint64_t vaddr, uint64_t max,
			   size_t *ret_bytes);
/* Exactly `bytes` bytes at vaddr, inside one segment, or NULL. */
const uint8_t *elf_file_read(const struct elf_file *ef, uint64_t vaddr, uint64_t bytes);

/*
 * Unpack a compressed section, with a bound on the result.
 *
 * Not libelf's elf_compress(): before 0.189 it has no zstd, and it takes whatever memory a header asks for.
 *
 * type: ELFCOMPRESS_*. out_bytes: the size of the result by the header; any other size is damage. -ENOEXEC: damaged, or
 * another type.
 */
int decompress(uint32_t type, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes);

/* The image: the bytes of a file, each read when it is first needed. */

struct elf_image {
	uint8_t *data; /* zeros where nothing was read yet */
	size_t bytes;
	struct elf_budget *budget; /* pays for what is read; NULL: no limit */
	int fd; /* -1: all is read */
	uint8_t *chunk_read; /* one byte per chunk */
};

/* fd must be a regular file (-ENOEXEC otherwise); it is duplicated, not consumed. */
int elf_image_open_fd(int fd, struct elf_image *ret);
void elf_image_close(struct elf_image *im);
/* Read [off, off + bytes). NULL: the file is not that long, or too much of it was read. The bytes never move, change
 * or fault. */
uint8_t *elf_image_get(const struct elf_image *im, uint64_t off, uint64_t bytes);

#endif
