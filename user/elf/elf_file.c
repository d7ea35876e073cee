/* SPDX-License-Identifier: MIT */
/*
 * elf_file.c - one ELF file: headers, identity, segments. Sections are in elf_section.c.
 *
 * A reader of our own instead of libelf, because it must open hundreds of files of a process in
 * milliseconds, never fault on a file that shrinks (elf_image.c), never trust a size (a section
 * that is compressed with zstd is also beyond libelf 0.188), and be small enough to fuzz.
 *
 * What is damaged: a broken ELF or program header makes open fail; a broken section table, note
 * or dynamic section makes that part absent. Files of the other byte order are refused; of
 * 32-bit files headers, segments and notes are read, which is enough to say what they are.
 */
#include "elf/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf/decompress.h"
#include "elf/elf_file_priv.h"

#define SEGMENTS_CAP (1U << 16)
#define DYNAMIC_CAP 4096
#define PAGE_BYTES 4096ULL

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

static bool read_phdr(const struct elf_file *ef, uint64_t i, Elf64_Phdr *ret)
{
	size_t bytes = elf_file_is_64(ef) ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	const void *p;
	Elf32_Phdr h;

	if (ef->eh.e_phentsize < bytes || ef->eh.e_phoff > elf_image_bytes(ef->im))
		return false;
	p = elf_bytes(ef, ef->eh.e_phoff + i * ef->eh.e_phentsize, bytes);
	if (!p)
		return false;
	if (elf_file_is_64(ef)) {
		memcpy(ret, p, sizeof(*ret));
		return true;
	}
	memcpy(&h, p, sizeof(h));
	*ret = (Elf64_Phdr){ .p_type = h.p_type,
			     .p_flags = h.p_flags,
			     .p_offset = h.p_offset,
			     .p_vaddr = h.p_vaddr,
			     .p_filesz = h.p_filesz,
			     .p_memsz = h.p_memsz,
			     .p_align = h.p_align };
	return true;
}

static int read_segments(struct elf_file *ef)
{
	uint64_t cnt = ef->eh.e_phnum, i;
	Elf64_Shdr first;

	if (cnt == PN_XNUM && elf_read_shdr(ef, 0, &first))
		cnt = first.sh_info;
	if (!cnt)
		return 0;
	if (cnt > SEGMENTS_CAP)
		return -ENOEXEC;
	ef->phdrs = calloc(cnt, sizeof(*ef->phdrs));
	ef->segments = calloc(cnt, sizeof(*ef->segments));
	if (!ef->phdrs || !ef->segments)
		return -ENOMEM;
	for (i = 0; i < cnt; i++) {
		Elf64_Phdr *ph = &ef->phdrs[i];

		if (!read_phdr(ef, i, ph))
			return -ENOEXEC;
		ef->phdr_cnt++;
		/* Not compared with the file's size: in a split-off debug file the segments
		 * are those of the program. */
		if (ph->p_offset + ph->p_filesz < ph->p_offset ||
		    ph->p_vaddr + ph->p_memsz < ph->p_vaddr)
			return -ENOEXEC;
		if (ph->p_type != PT_LOAD)
			continue;
		ef->segments[ef->segment_cnt++] =
			(struct elf_segment){ .vaddr = ph->p_vaddr,
					      .off = ph->p_offset,
					      .file_bytes = ph->p_filesz,
					      .mem_bytes = ph->p_memsz,
					      .is_exec = ph->p_flags & PF_X,
					      .is_write = ph->p_flags & PF_W };
	}
	return 0;
}

/* Notes are three words, a name and a description, each padded to 4 (or the segment's 8). */
static void read_notes(struct elf_file *ef, uint64_t off, uint64_t bytes, uint64_t align)
{
	const uint8_t *p = bytes <= ELF_AT_BYTES ? elf_bytes(ef, off, bytes) : NULL;
	uint64_t pad = align == 8 ? 7 : 3, pos = 0;

	while (p && bytes - pos >= sizeof(Elf64_Nhdr)) {
		uint64_t name_pos = pos + sizeof(Elf64_Nhdr), desc_pos, end;
		Elf64_Nhdr nh;

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

		/* Sections first: in a split-off debug file the segments' offsets do not hold. */
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

/* Consumes im. */
static int open_image(struct elf_image *im, struct elf_file **ret)
{
	struct elf_file *ef = calloc(1, sizeof(*ef));
	int err;

	if (!ef) {
		elf_image_close(im);
		return -ENOMEM;
	}
	ef->im = im;
	err = read_header(ef);
	if (!err)
		err = read_segments(ef);
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

	return err ? err : open_image(im, ret);
}

int elf_file_open(const char *path, struct elf_file **ret)
{
	/* O_NONBLOCK: the path may name a FIFO that nobody writes to. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int err;

	if (fd < 0)
		return -errno;
	err = elf_file_open_fd(fd, ret);
	close(fd);
	return err;
}

int elf_file_open_mem(const void *image, size_t bytes, struct elf_file **ret)
{
	struct elf_image *im;
	int err = elf_image_open_mem(image, bytes, &im);

	return err ? err : open_image(im, ret);
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
	free(ef->phdrs);
	elf_image_close(ef->im);
	free(ef);
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

const struct elf_segment *elf_file_segments(const struct elf_file *ef, size_t *ret_cnt)
{
	*ret_cnt = ef->segment_cnt;
	return ef->segments;
}

int elf_file_program_head(const struct elf_file *ef, uint32_t type, size_t nth,
			  struct elf_program_head *ret)
{
	size_t i;

	for (i = 0; i < ef->phdr_cnt; i++) {
		const Elf64_Phdr *ph = &ef->phdrs[i];

		if (ph->p_type != type || nth--)
			continue;
		*ret = (struct elf_program_head){ .vaddr = ph->p_vaddr,
						  .off = ph->p_offset,
						  .file_bytes = ph->p_filesz,
						  .mem_bytes = ph->p_memsz,
						  .align = ph->p_align };
		return 0;
	}
	return -ENOENT;
}

int elf_file_off_to_vaddr(const struct elf_file *ef, uint64_t off, uint64_t *ret_vaddr)
{
	const struct elf_segment *page = NULL;
	size_t i;

	for (i = 0; i < ef->segment_cnt; i++) {
		const struct elf_segment *s = &ef->segments[i];

		if (off >= s->off && off - s->off < s->file_bytes) {
			*ret_vaddr = s->vaddr + (off - s->off);
			return 0;
		}
		if (off < s->off && s->file_bytes && off / PAGE_BYTES == s->off / PAGE_BYTES &&
		    s->vaddr >= s->off - off && (!page || s->is_exec))
			page = s;
	}
	if (!page)
		return -ENOENT;
	*ret_vaddr = page->vaddr - (page->off - off);
	return 0;
}

int elf_file_vaddr_to_off(const struct elf_file *ef, uint64_t vaddr, uint64_t *ret_off)
{
	size_t i;

	for (i = 0; i < ef->segment_cnt; i++) {
		const struct elf_segment *s = &ef->segments[i];

		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->file_bytes) {
			*ret_off = s->off + (vaddr - s->vaddr);
			return 0;
		}
	}
	return -ENOENT;
}

const uint8_t *elf_file_at(const struct elf_file *ef, uint64_t vaddr, size_t *ret_bytes)
{
	size_t image_bytes = elf_image_bytes(ef->im), i;

	for (i = 0; i < ef->segment_cnt; i++) {
		const struct elf_segment *s = &ef->segments[i];
		uint64_t off, bytes;

		if (vaddr < s->vaddr || vaddr - s->vaddr >= s->file_bytes)
			continue;
		off = s->off + (vaddr - s->vaddr);
		bytes = s->file_bytes - (vaddr - s->vaddr);
		if (off >= image_bytes)
			continue;
		if (bytes > image_bytes - off)
			bytes = image_bytes - off;
		if (bytes > ELF_AT_BYTES)
			bytes = ELF_AT_BYTES;
		*ret_bytes = bytes;
		return elf_bytes(ef, off, bytes);
	}
	*ret_bytes = 0;
	return NULL;
}

const uint8_t *elf_file_read(const struct elf_file *ef, uint64_t vaddr, uint64_t bytes)
{
	size_t i;

	for (i = 0; i < ef->segment_cnt && bytes <= DECOMPRESS_BYTES_CAP; i++) {
		const struct elf_segment *s = &ef->segments[i];

		if (vaddr >= s->vaddr && vaddr - s->vaddr <= s->file_bytes &&
		    bytes <= s->file_bytes - (vaddr - s->vaddr))
			return elf_bytes(ef, s->off + (vaddr - s->vaddr), bytes);
	}
	return NULL;
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

const uint8_t *elf_file_image(const struct elf_file *ef, size_t *ret_bytes)
{
	*ret_bytes = elf_image_bytes(ef->im);
	return elf_image_map(ef->im);
}
