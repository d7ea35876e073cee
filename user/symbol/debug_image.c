/* SPDX-License-Identifier: MIT */
/*
 * debug_image.c - an ELF file in memory with its compressed DWARF sections unpacked.
 *
 * The image is the file itself, mapped, and behind it (one address range, as libelf's elf_memory() wants it)
 * the unpacked sections and a new section table that points at them. Only the page of the file header is
 * changed (e_shoff), and that page is private. Nothing of the file is copied, so a file without compressed
 * sections costs no memory at all.
 *
 * Compressed sections that the lookup does not need (.debug_loc, ...) are made empty in the new table: libdw
 * would unpack them as soon as it opens the file.
 *
 * Trusts nothing in the file. A file that is truncated while it is mapped raises SIGBUS, which is one reason
 * why this runs in the helper process.
 */
#include "symbol/dwarf_lookup_priv.h"

#include <gelf.h>
#include <sys/mman.h>

#include "base/names.h"
#include "elf/elf_file.h"

/* Limit of all unpacked sections of one file together. */
#define UNPACKED_BYTES_CAP (4ULL << 30)
#define PAGE_BYTES 4096ULL

struct debug_image {
	uint8_t *map;
	size_t map_bytes;
	size_t file_bytes;
	Elf *elf;
};

static const char *const needed_sections[] = {
	".debug_abbrev", ".debug_addr",	       ".debug_info",	    ".debug_line",
	".debug_ranges", ".debug_line_str",    ".debug_rnglists",   ".debug_str",
	".debug_types",	 ".debug_str_offsets", ".gnu_debugaltlink",
};

static bool is_needed(const char *name)
{
	return equals_one_of(name, needed_sections, ARRAY_CNT(needed_sections));
}

/* Name of a section, or NULL; never NULL for a section that has one. */
static const char *section_name(Elf *elf, const GElf_Shdr *sh)
{
	size_t strtab;

	if (elf_getshdrstrndx(elf, &strtab) != 0)
		return NULL;
	return elf_strptr(elf, strtab, sh->sh_name);
}

static bool section_in_file(const GElf_Shdr *sh, size_t file_bytes)
{
	return sh->sh_type != SHT_NOBITS && sh->sh_offset <= file_bytes &&
	       sh->sh_size <= file_bytes - sh->sh_offset;
}

/* Bytes that the unpacked sections take; 0 when there is nothing to unpack. */
static int measure(Elf *elf, size_t file_bytes, size_t *ret_bytes, size_t *ret_cnt)
{
	Elf_Scn *scn = NULL;
	uint64_t bytes = 0;
	size_t compressed_cnt = 0;

	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;
		GElf_Chdr ch;
		const char *name;

		if (!gelf_getshdr(scn, &sh))
			return -ENOEXEC;
		if (!(sh.sh_flags & SHF_COMPRESSED) || !section_in_file(&sh, file_bytes))
			continue;
		compressed_cnt++;
		name = section_name(elf, &sh);
		if (!name || !is_needed(name) || !gelf_getchdr(scn, &ch))
			continue;
		if (ch.ch_size > UNPACKED_BYTES_CAP - bytes)
			return -EFBIG;
		bytes += (ch.ch_size + 15) & ~15ULL;
		if (bytes > UNPACKED_BYTES_CAP)
			return -EFBIG;
	}
	*ret_bytes = bytes;
	*ret_cnt = compressed_cnt;
	return 0;
}

/* Write a section header into the new table (both classes keep the same four fields). */
static void patch_header(uint8_t *header, bool is_64, bool is_empty, uint64_t off, uint64_t bytes)
{
	if (is_64) {
		Elf64_Shdr sh;

		memcpy(&sh, header, sizeof(sh));
		sh.sh_type = is_empty ? SHT_NOBITS : sh.sh_type;
		sh.sh_flags &= ~(uint64_t)SHF_COMPRESSED;
		sh.sh_offset = off;
		sh.sh_size = bytes;
		sh.sh_addralign = 1;
		memcpy(header, &sh, sizeof(sh));
	} else {
		Elf32_Shdr sh;

		memcpy(&sh, header, sizeof(sh));
		sh.sh_type = is_empty ? SHT_NOBITS : sh.sh_type;
		sh.sh_flags &= ~(uint32_t)SHF_COMPRESSED;
		sh.sh_offset = (Elf32_Off)off;
		sh.sh_size = (Elf32_Word)bytes;
		sh.sh_addralign = 1;
		memcpy(header, &sh, sizeof(sh));
	}
}

/* Unpack one section to *pos and advance it. A section that cannot be unpacked becomes empty. */
static void place_section(struct debug_image *img, Elf *elf, Elf_Scn *scn, uint8_t *header,
			  size_t *pos)
{
	bool is_64 = gelf_getclass(elf) == ELFCLASS64;
	size_t chdr_bytes = is_64 ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
	const char *name;
	GElf_Shdr sh;
	GElf_Chdr ch;

	if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_COMPRESSED) ||
	    !section_in_file(&sh, img->file_bytes))
		return;
	name = section_name(elf, &sh);
	if (!name || !is_needed(name) || !gelf_getchdr(scn, &ch) || sh.sh_size < chdr_bytes ||
	    decompress(ch.ch_type, img->map + sh.sh_offset + chdr_bytes, sh.sh_size - chdr_bytes,
		       img->map + *pos, ch.ch_size)) {
		patch_header(header, is_64, true, 0, 0);
		return;
	}
	patch_header(header, is_64, false, *pos, ch.ch_size);
	*pos += (ch.ch_size + 15) & ~15ULL;
}

static void set_shoff(uint8_t *image, bool is_64, uint64_t off)
{
	if (is_64)
		memcpy(image + offsetof(Elf64_Ehdr, e_shoff), &off, sizeof(Elf64_Off));
	else
		memcpy(image + offsetof(Elf32_Ehdr, e_shoff), &(Elf32_Off){ (Elf32_Off)off },
		       sizeof(Elf32_Off));
}

/* elf reads the file as it is; the unpacked image replaces it. */
static int build(struct debug_image *img, int fd, Elf *elf, size_t unpacked_bytes)
{
	size_t file_span = (img->file_bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	bool is_64 = gelf_getclass(elf) == ELFCLASS64;
	size_t entry_bytes = is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	size_t section_cnt, pos, table, table_bytes;
	Elf_Scn *scn = NULL;
	GElf_Ehdr eh;

	if (!gelf_getehdr(elf, &eh) || elf_getshdrnum(elf, &section_cnt) != 0 ||
	    eh.e_shentsize != entry_bytes || section_cnt > img->file_bytes / entry_bytes)
		return -ENOEXEC;
	table_bytes = section_cnt * entry_bytes;
	if (eh.e_shoff > img->file_bytes || table_bytes > img->file_bytes - eh.e_shoff)
		return -ENOEXEC;
	table = file_span + unpacked_bytes;
	img->map_bytes = table + table_bytes;
	if (!is_64 && img->map_bytes > UINT32_MAX)
		return -EFBIG;
	img->map = mmap(NULL, img->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	if (img->map == MAP_FAILED) {
		img->map = NULL;
		return -ENOMEM;
	}
	if (mmap(img->map, file_span, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    mprotect(img->map, PAGE_BYTES, PROT_READ | PROT_WRITE) != 0)
		return -ENOMEM;
	memcpy(img->map + table, img->map + eh.e_shoff, table_bytes);
	pos = file_span;
	while ((scn = elf_nextscn(elf, scn)))
		place_section(img, elf, scn, img->map + table + elf_ndxscn(scn) * entry_bytes,
			      &pos);
	set_shoff(img->map, is_64, table);
	img->elf = elf_memory((char *)img->map, img->map_bytes);
	return img->elf ? 0 : -ENOEXEC;
}

int debug_image_open(int fd, struct debug_image **ret)
{
	size_t unpacked_bytes = 0, compressed_cnt = 0;
	struct debug_image *img;
	Elf *elf = NULL;
	struct stat st;
	int err;

	elf_version(EV_CURRENT);
	img = calloc(1, sizeof(*img));
	if (!img)
		return -ENOMEM;
	if (fstat(fd, &st) != 0) {
		err = -errno;
		goto out;
	}
	img->file_bytes = (size_t)st.st_size;
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF) {
		err = -ENOEXEC;
		goto out;
	}
	err = measure(elf, img->file_bytes, &unpacked_bytes, &compressed_cnt);
	if (err)
		goto out;
	if (compressed_cnt == 0) {
		img->elf = elf;
		elf = NULL;
	} else {
		err = build(img, fd, elf, unpacked_bytes);
	}
out:
	elf_end(elf);
	if (err)
		debug_image_free(img);
	else
		*ret = img;
	return err;
}

void debug_image_free(struct debug_image *img)
{
	if (!img)
		return;
	elf_end(img->elf);
	if (img->map)
		munmap(img->map, img->map_bytes);
	free(img);
}

Elf *debug_image_elf(const struct debug_image *img)
{
	return img->elf;
}

bool debug_image_has_section(const struct debug_image *img, const char *name)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(img->elf, scn))) {
		const char *found;
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh))
			return false;
		found = section_name(img->elf, &sh);
		if (found && strcmp(found, name) == 0)
			return sh.sh_type != SHT_NOBITS && sh.sh_size > 0;
	}
	return false;
}

void debug_image_drop_pages(struct debug_image *img)
{
	size_t bytes = 0;
	char *base;

	/* The first page of a built image is private and changed: it must stay. */
	if (img->map) {
		size_t span = img->file_bytes & ~(PAGE_BYTES - 1);

		if (span > PAGE_BYTES)
			(void)madvise(img->map + PAGE_BYTES, span - PAGE_BYTES, MADV_DONTNEED);
		return;
	}
	base = elf_rawfile(img->elf, &bytes);
	if (base && (uintptr_t)base % PAGE_BYTES == 0)
		(void)madvise(base, bytes & ~(PAGE_BYTES - 1), MADV_DONTNEED);
}
