/* SPDX-License-Identifier: MIT */
/*
 * elf_file.c - one ELF file: headers and identity. Segments are in elf_segments.c, sections in elf_section.c.
 *
 * Why our own reader instead of libelf: each file has a budget (elf_budget.h), and what was read until it is spent is
 * used, while libelf takes whatever memory a header asks for. It also reads sections that are compressed with zstd,
 * which libelf of Debian 12 cannot. It takes several times as long as libelf to identify a file, which does not matter:
 * for 300 files that is a hundredth of an attach (tools/bench/run elf; attach).
 *
 * Damage: a broken ELF or program header makes open fail; a broken section table, note or dynamic section makes that
 * part absent. Files of the other byte order are refused. Of 32-bit files the headers, segments and notes are read,
 * which is enough to identify them.
 */
#include "elf/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/regular_file.h"
#include "elf/elf_file_priv.h"

#define DYNAMIC_CAP 4096

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OUR_DATA ELFDATA2LSB
#else
#define OUR_DATA ELFDATA2MSB
#endif

const void *elf_bytes(const struct elf_file *ef, uint64_t off, uint64_t bytes)
{
	return elf_image_get(ef->im, off, bytes);
}

const char *elf_string(const struct elf_file *ef, uint64_t off, uint64_t end)
{
	uint64_t bytes;
	const char *p;

	if (off >= end)
		return NULL;
	bytes = end - off < STRING_BYTES_CAP ? end - off : STRING_BYTES_CAP;
	p = elf_bytes(ef, off, bytes);
	return p && memchr(p, 0, bytes) ? p : NULL;
}

static int read_header(struct elf_file *ef)
{
	const uint8_t *p = elf_bytes(ef, 0, sizeof(Elf32_Ehdr));
	Elf32_Ehdr h;

	if (!p || memcmp(p, ELFMAG, SELFMAG) || p[EI_DATA] != OUR_DATA)
		return -ENOEXEC;
	if (p[EI_CLASS] == ELFCLASS64) {
		p = elf_bytes(ef, 0, sizeof(ef->eh));
		if (!p)
			return -ENOEXEC;
		memcpy(&ef->eh, p, sizeof(ef->eh));
		return 0;
	}
	if (p[EI_CLASS] != ELFCLASS32)
		return -ENOEXEC;
	memcpy(&h, p, sizeof(h));
	memcpy(ef->eh.e_ident, h.e_ident, EI_NIDENT);
	ef->eh.e_type = h.e_type;
	ef->eh.e_machine = h.e_machine;
	ef->eh.e_phoff = h.e_phoff;
	ef->eh.e_shoff = h.e_shoff;
	ef->eh.e_phentsize = h.e_phentsize;
	ef->eh.e_phnum = h.e_phnum;
	ef->eh.e_shentsize = h.e_shentsize;
	ef->eh.e_shnum = h.e_shnum;
	ef->eh.e_shstrndx = h.e_shstrndx;
	return 0;
}

/* Read notes. A note is three words, a name and a description, each padded to 4 (or to the segment's 8). */
static void read_notes(struct elf_file *ef, uint64_t off, uint64_t bytes, uint64_t align)
{
	const uint8_t *p = bytes <= ELF_AT_BYTES ? elf_bytes(ef, off, bytes) : NULL;
	uint64_t pad = align == 8 ? 7 : 3, pos = 0;

	while (p && bytes - pos >= sizeof(Elf64_Nhdr)) {
		uint64_t name_pos = pos + sizeof(Elf64_Nhdr), desc_pos, end;
		Elf64_Nhdr nh;

		if (!elf_file_step(ef, 1))
			return;
		memcpy(&nh, p + pos, sizeof(nh));
		desc_pos = (name_pos + nh.n_namesz + pad) & ~pad;
		end = desc_pos + nh.n_descsz;
		if (end > bytes)
			return;
		if (nh.n_type == NT_GNU_BUILD_ID && nh.n_namesz == 4 &&
		    !memcmp(p + name_pos, "GNU", 4) && nh.n_descsz &&
		    nh.n_descsz <= BUILD_ID_BYTES_CAP && !ef->build_id_bytes) {
			memcpy(ef->build_id, p + desc_pos, nh.n_descsz);
			ef->build_id_bytes = nh.n_descsz;
		}
		if (nh.n_namesz == 3 && !memcmp(p + name_pos, "Go", 3))
			ef->is_go = true;
		pos = (end + pad) & ~pad;
		if (pos > bytes)
			return;
	}
}

static void read_identity(struct elf_file *ef)
{
	uint64_t table, idx;
	size_t i;

	for (i = 0; i < ef->section_cnt; i++) {
		const struct elf_section_head *s = &ef->sections[i];

		/* Sections first: in a split-off debug file the segments' offsets are not valid. */
		if (s->type == SHT_NOTE)
			read_notes(ef, s->off, s->bytes,
				   !strcmp(s->name, ".note.gnu.property") ? 8 : 4);
		if (!strcmp(s->name, ".gopclntab") || !strcmp(s->name, ".go.buildinfo") ||
		    !strcmp(s->name, ".data.rel.ro.gopclntab"))
			ef->is_go = true;
	}
	for (i = 0; i < ef->phdr_cnt; i++) {
		const Elf64_Phdr *ph = &ef->phdrs[i];

		if (ph->p_type == PT_NOTE)
			read_notes(ef, ph->p_offset, ph->p_filesz, ph->p_align);
		if (ph->p_type == PT_INTERP && !ef->interp)
			ef->interp = elf_string(ef, ph->p_offset, ph->p_offset + ph->p_filesz);
	}
	if (!elf_file_dynamic(ef, DT_SONAME, &idx) && !elf_file_dynamic(ef, DT_STRTAB, &table) &&
	    table + idx >= table) {
		size_t bytes;
		const uint8_t *p = elf_file_at(ef, table + idx, &bytes);

		if (p && memchr(p, 0, bytes < STRING_BYTES_CAP ? bytes : STRING_BYTES_CAP))
			ef->soname = (const char *)p;
	}
}

/* Consumes im. budget NULL: use the file's own. */
static int open_image(struct elf_image *im, struct elf_budget *budget, struct elf_file **ret)
{
	struct elf_file *ef = calloc(1, sizeof(*ef));
	int err;

	if (!ef) {
		elf_image_close(im);
		return -ENOMEM;
	}
	ef->im = im;
	ef->budget = budget;
	if (!budget) {
		ef->budget = &ef->own_budget;
		elf_budget_init(ef->budget, elf_image_bytes(im));
	}
	elf_image_limit(im, ef->budget);
	err = read_header(ef);
	if (!err)
		err = elf_read_segments(ef);
	if (!err)
		err = elf_read_sections(ef);
	if (err) {
		elf_file_close(ef);
		return err;
	}
	read_identity(ef);
	*ret = ef;
	return 0;
}

int elf_file_open_fd(int fd, struct elf_file **ret)
{
	struct elf_image *im;
	int err = elf_image_open_fd(fd, &im);

	return err ? err : open_image(im, NULL, ret);
}

int elf_file_open(const char *path, struct elf_file **ret)
{
	int fd = regular_file_open(path), err;

	if (fd < 0)
		return fd;
	err = elf_file_open_fd(fd, ret);
	close(fd);
	return err;
}

int elf_file_open_mem(const void *image, size_t bytes, struct elf_file **ret)
{
	struct elf_image *im;
	int err = elf_image_open_mem(image, bytes, &im);

	return err ? err : open_image(im, NULL, ret);
}

int elf_file_open_part(const struct elf_file *whole, const void *image, size_t bytes,
		       struct elf_file **ret)
{
	struct elf_image *im;
	int err = elf_image_open_mem(image, bytes, &im);

	return err ? err : open_image(im, whole->budget, ret);
}

void elf_file_close(struct elf_file *ef)
{
	size_t i;

	if (!ef)
		return;
	for (i = 0; ef->unpacked && i < ef->section_cnt; i++)
		free(ef->unpacked[i]);
	free(ef->unpacked);
	free(ef->unpacked_bytes);
	free(ef->sections);
	free(ef->segments);
	free(ef->segment_keys);
	free(ef->phdrs);
	elf_image_close(ef->im);
	free(ef);
}

bool elf_file_step(const struct elf_file *ef, uint64_t cnt)
{
	return elf_budget_step(ef->budget, cnt);
}

bool elf_file_fill(const struct elf_file *ef, uint64_t bytes)
{
	return elf_budget_fill(ef->budget, bytes);
}

const struct elf_budget *elf_file_budget(const struct elf_file *ef)
{
	return ef->budget;
}

bool elf_file_is_partly_read(const struct elf_file *ef)
{
	return ef->is_cut || ef->budget->is_over;
}

int elf_file_machine(const struct elf_file *ef)
{
	return ef->eh.e_machine;
}

bool elf_file_is_64(const struct elf_file *ef)
{
	return ef->eh.e_ident[EI_CLASS] == ELFCLASS64;
}

int elf_file_type(const struct elf_file *ef)
{
	return ef->eh.e_type;
}

const uint8_t *elf_file_build_id(const struct elf_file *ef, size_t *ret_bytes)
{
	*ret_bytes = ef->build_id_bytes;
	return ef->build_id_bytes ? ef->build_id : NULL;
}

void elf_file_build_id_hex(const struct elf_file *ef, char *buf)
{
	static const char digits[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < ef->build_id_bytes; i++) {
		buf[2 * i] = digits[ef->build_id[i] >> 4];
		buf[2 * i + 1] = digits[ef->build_id[i] & 15];
	}
	buf[2 * i] = '\0';
}

const char *elf_file_interp(const struct elf_file *ef)
{
	return ef->interp;
}

const char *elf_file_soname(const struct elf_file *ef)
{
	return ef->soname;
}

bool elf_file_is_go(const struct elf_file *ef)
{
	return ef->is_go;
}

bool elf_file_is_static(const struct elf_file *ef)
{
	uint64_t flags = 0;

	if (elf_file_interp(ef) || elf_file_soname(ef))
		return false;
	if (elf_file_type(ef) == ET_EXEC)
		return true;
	return elf_file_type(ef) == ET_DYN && !elf_file_dynamic(ef, DT_FLAGS_1, &flags) &&
	       flags & DF_1_PIE;
}

int elf_file_dynamic(const struct elf_file *ef, int64_t tag, uint64_t *ret_val)
{
	const uint8_t *p = NULL;
	uint64_t bytes = 0;
	size_t i;

	if (!elf_file_is_64(ef))
		return -ENOENT;
	for (i = 0; i < ef->phdr_cnt && !p; i++) {
		if (ef->phdrs[i].p_type != PT_DYNAMIC)
			continue;
		bytes = ef->phdrs[i].p_filesz;
		if (bytes > DYNAMIC_CAP * sizeof(Elf64_Dyn))
			bytes = DYNAMIC_CAP * sizeof(Elf64_Dyn);
		p = elf_bytes(ef, ef->phdrs[i].p_offset, bytes);
	}
	for (i = 0; p && (i + 1) * sizeof(Elf64_Dyn) <= bytes; i++) {
		Elf64_Dyn d;

		memcpy(&d, p + i * sizeof(d), sizeof(d));
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == tag) {
			*ret_val = d.d_un.d_val;
			return 0;
		}
	}
	return -ENOENT;
}
