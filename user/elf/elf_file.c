/* SPDX-License-Identifier: MIT */
/*
 * elf_file.c - one ELF file: libelf over an image that is read on demand (its section says why).
 *
 * libelf trusts a file more than heaptap can. So before it is asked: the headers that it will look at are read and paid
 * for, a section table is dropped for which it would allocate too much, the contents of a section are taken as they are
 * (elf_rawdata(): elf_getdata() copies what is not aligned), and a table of strings must be plain and have a zero near
 * its end (else elf_strptr() unpacks it, or looks for a zero through all of it for each name).
 *
 * Damage: a broken ELF or program header makes open fail; a broken section table, note or dynamic section makes that
 * part absent. Files of the other byte order are refused. Of 32-bit files the headers, segments and notes are read,
 * which is enough to identify them.
 */
#include "elf/elf_file.h"

#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>

#include "base/fd.h"
#include "base/vec.h"
#include "elf/elf_budget.h"

#define STRING_BYTES_CAP 4096
#define DYNAMIC_BYTES_CAP 65536
/* The kernel starts no program with more than 64 KiB of program headers; linkers make a dozen. */
#define PHDRS_CAP (65536 / sizeof(Elf64_Phdr))
#define SECTIONS_CAP (1U << 20)
#define TABLE_BYTES_CAP (512ULL << 20)
#define SECTION_BYTES 256 /* what libelf allocates for each */
#define PAGE_BYTES 4096ULL
/* Segments that are compared in the time of a step; real files have no more. */
#define SEGMENTS_PER_STEP 8
/* Bytes that can be unpacked in the time of a step. */
#define UNPACKED_PER_STEP 8
#define UNPACKED_BYTES_CAP (1ULL << 30)
/* zlib emits at most 258 bytes for two bits of input. */
#define ZLIB_RATIO_CAP 1040

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OUR_DATA ELFDATA2LSB
#else
#define OUR_DATA ELFDATA2MSB
#endif
#ifndef ELFCOMPRESS_ZSTD /* before glibc 2.36 */
#define ELFCOMPRESS_ZSTD 2
#endif

struct unpacked {
	const Elf_Scn *scn;
	uint8_t *data;
	size_t bytes;
};

struct elf_file {
	struct elf_image im;
	struct elf_budget *budget; /* own_budget, or that of the file that contains this one */
	struct elf_budget own_budget;
	Elf *elf;
	GElf_Ehdr eh;
	bool is_cut; /* there are more program headers than were read */
	size_t names_idx; /* section with the names of sections; 0: none, or damaged */
	VEC(struct elf_segment) segments;
	VEC(struct unpacked) unpacked;
	Elf_Data *dynamic; /* NULL: none */
	char build_id_hex[2 * BUILD_ID_BYTES_CAP + 1];
	const char *interp, *soname;
	bool is_go;
};

/*
 * The bytes of a file, each read when it is first needed.
 *
 * libelf is given this memory (elf_memory()), not the file. What was measured with libelf 0.188:
 *   mapped (elf_memory() over mmap(), ELF_C_READ_MMAP): libelf checks a header in the mapping and uses it later. Whoever
 *     rewrites the file in between makes it read outside of the mapping (SIGSEGV). A file that is cut raises SIGBUS.
 *     Reading a hole of 512 MB on a tmpfs allocates 512 MB there, in our name; pread() allocates nothing.
 *   read by libelf (ELF_C_READ): a section is a private copy without limit, and code is only to be had as a copy of its
 *     segment: 236 MB for a browser, of which everything that is read takes 54 MB.
 *
 * So an anonymous area of the file's size is reserved (address space only), and pieces of CHUNK_BYTES are read into it
 * with pread() when a caller asks for a range. Bytes that have vanished since open read as zeros, which the parsers refuse
 * like any damage. Holes of a sparse file are zeros without being read: they cost their maker nothing, so they cost no
 * memory here. The price: the bytes that were read are private memory, not shared page cache, until the image is closed.
 */

#define CHUNK_BYTES (16 * 1024)
#define READ_BYTES_CAP (1024 * 1024) /* per read: a hole is looked for after it */
/* Far above any real program; up to this size the reservation and the bitmap are always affordable. */
#define FILE_BYTES_CAP (1ULL << 36)

static int reserve(size_t bytes, struct elf_image *ret)
{
	void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (data == MAP_FAILED)
		return -ENOMEM;
	*ret = (struct elf_image){ .data = data, .bytes = bytes, .fd = -1 };
	return 0;
}

int elf_image_open_fd(int fd, struct elf_image *ret)
{
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -ENOEXEC;
	if ((uint64_t)st.st_size > FILE_BYTES_CAP)
		return -EFBIG;
	err = reserve((size_t)st.st_size, ret);
	if (err)
		return err;
	ret->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	err = ret->fd < 0 ? -errno : 0;
	ret->chunk_read = calloc(1, ret->bytes / CHUNK_BYTES + 1);
	if (!err && !ret->chunk_read)
		err = -ENOMEM;
	if (err)
		elf_image_close(ret);
	return err;
}

/* Copies the bytes. */
static int elf_image_open_mem(const void *data, size_t bytes, struct elf_image *ret)
{
	int err = bytes ? reserve(bytes, ret) : -ENOEXEC;

	if (!err)
		memcpy(ret->data, data, bytes);
	return err;
}

void elf_image_close(struct elf_image *im)
{
	if (im->data)
		munmap(im->data, im->bytes);
	free(im->chunk_read);
	if (im->fd >= 0)
		close(im->fd);
}

/* Where data begins in [off, end); end if there is none. */
static size_t skip_hole(const struct elf_image *im, size_t off, size_t end)
{
	off_t data = lseek(im->fd, (off_t)off, SEEK_DATA);

	if (data < 0) /* no more data, or the file system cannot tell */
		return errno == ENXIO ? end : off;
	return (size_t)data < end ? (size_t)data : end;
}

/* Bytes that cannot be read stay zero. False: too much was read. */
static bool read_range(const struct elf_image *im, size_t off, size_t end)
{
	while ((off = skip_hole(im, off, end)) < end) {
		size_t bytes = end - off < READ_BYTES_CAP ? end - off : READ_BYTES_CAP;
		ssize_t n;

		if (im->budget && !elf_budget_fill(im->budget, bytes))
			return false;
		do {
			n = pread(im->fd, im->data + off, bytes, (off_t)off);
		} while (n < 0 && errno == EINTR);
		if (n <= 0)
			break;
		off += (size_t)n;
	}
	return true;
}

uint8_t *elf_image_get(const struct elf_image *im, uint64_t off, uint64_t bytes)
{
	size_t i, run, end;

	if (off > im->bytes || bytes > im->bytes - off)
		return NULL;
	for (i = off / CHUNK_BYTES; im->fd >= 0 && i * CHUNK_BYTES < off + bytes; i = run + 1) {
		for (run = i; run * CHUNK_BYTES < off + bytes && !im->chunk_read[run]; run++)
			;
		end = run * CHUNK_BYTES < im->bytes ? run * CHUNK_BYTES : im->bytes;
		if (run > i && !read_range(im, i * CHUNK_BYTES, end))
			return NULL;
		memset(im->chunk_read + i, 1, run - i);
	}
	return im->data + off;
}

/* Read the section table, or drop it from the image. */
static void read_sections(struct elf_file *ef)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)ef->im.data;
	const uint8_t *first;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): errno was not 0 */
	uint64_t cnt = eh->e_shnum;

	if (eh->e_ident[EI_CLASS] == ELFCLASS32) {
		((Elf32_Ehdr *)eh)->e_shoff = 0;
		((Elf32_Ehdr *)eh)->e_shnum = 0;
		return;
	}
	first = eh->e_shoff ? elf_image_get(&ef->im, eh->e_shoff, sizeof(Elf64_Shdr)) : NULL;
	if (first && !cnt)
		memcpy(&cnt, first + offsetof(Elf64_Shdr, sh_size), sizeof(cnt));
	if (first && cnt <= SECTIONS_CAP && eh->e_shentsize == sizeof(Elf64_Shdr) &&
	    elf_image_get(&ef->im, eh->e_shoff, cnt * sizeof(Elf64_Shdr)) &&
	    elf_file_step(ef, cnt) && elf_file_fill(ef, cnt * SECTION_BYTES))
		return;
	eh->e_shoff = 0;
	eh->e_shnum = 0;
}

static int open_elf(struct elf_file *ef)
{
	uint8_t *ident = elf_image_get(&ef->im, 0, sizeof(Elf32_Ehdr));

	if (!ident || memcmp(ident, ELFMAG, SELFMAG) != 0 || ident[EI_DATA] != OUR_DATA ||
	    (ident[EI_CLASS] != ELFCLASS32 && ef->im.bytes < sizeof(Elf64_Ehdr)))
		return -ENOEXEC;
	ident[EI_VERSION] = EV_CURRENT; /* the kernel does not look at it */
	read_sections(ef);
	elf_version(EV_CURRENT);
	ef->elf = elf_memory((char *)ef->im.data, ef->im.bytes);
	if (!ef->elf)
		return -ENOMEM;
	return elf_kind(ef->elf) == ELF_K_ELF && gelf_getehdr(ef->elf, &ef->eh) ? 0 : -ENOEXEC;
}

static int read_segments(struct elf_file *ef)
{
	size_t cnt, head_bytes = gelf_fsize(ef->elf, ELF_T_PHDR, 1, EV_CURRENT);
	int err = 0;

	if (!ef->eh.e_phnum)
		return 0;
	/* libelf gives fewer if the file has ended. */
	if (ef->eh.e_phentsize != head_bytes || elf_getphdrnum(ef->elf, &cnt) ||
	    (ef->eh.e_phnum != PN_XNUM && ef->eh.e_phnum != cnt))
		return -ENOEXEC;
	if (!elf_image_get(&ef->im, ef->eh.e_phoff, cnt * head_bytes))
		return -ENOEXEC;
	ef->is_cut = cnt > PHDRS_CAP;
	for (size_t i = 0; i < cnt && i < PHDRS_CAP && !err; i++) {
		GElf_Phdr ph;

		/* Not compared with the file's size: in a split-off debug file the segments
		 * are those of the program. */
		if (!gelf_getphdr(ef->elf, (int)i, &ph) ||
		    ph.p_offset + ph.p_filesz < ph.p_offset || ph.p_vaddr + ph.p_memsz < ph.p_vaddr)
			return -ENOEXEC;
		if (ph.p_type == PT_LOAD)
			err = vec_push(&ef->segments,
				       (struct elf_segment){ .vaddr = ph.p_vaddr,
							     .off = ph.p_offset,
							     .file_bytes = ph.p_filesz,
							     .mem_bytes = ph.p_memsz,
							     .is_exec = ph.p_flags & PF_X,
							     .is_write = ph.p_flags & PF_W });
	}
	return err;
}

/* The contents of a table of symbols or names; NULL: damaged, or more than any browser has. */
static Elf_Data *table_data(const struct elf_file *ef, Elf_Scn *scn)
{
	GElf_Shdr sh;

	return gelf_getshdr(scn, &sh) && !(sh.sh_flags & SHF_COMPRESSED) && sh.sh_size &&
			       sh.sh_size <= TABLE_BYTES_CAP ?
		       elf_file_data(ef, scn) :
		       NULL;
}

/* Read a table of strings. false: elf_strptr() must not see it. */
static bool has_strings(const struct elf_file *ef, size_t idx)
{
	const Elf_Data *data = table_data(ef, elf_getscn(ef->elf, idx));
	size_t tail = data && data->d_size < STRING_BYTES_CAP ? data->d_size : STRING_BYTES_CAP;

	return data && memrchr((const char *)data->d_buf + data->d_size - tail, 0, tail);
}

static int note_identity(void *ctx, const GElf_Nhdr *note, const char *name, const uint8_t *desc)
{
	struct elf_file *ef = ctx;

	if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && !memcmp(name, "GNU", 4) &&
	    !ef->build_id_hex[0])
		elf_build_id_to_hex(desc, note->n_descsz, ef->build_id_hex);
	if (note->n_namesz == 3 && !memcmp(name, "Go", 3))
		ef->is_go = true;
	return 0;
}

/* The string at p, of at most bytes; NULL: it does not end. */
static const char *string_in(const uint8_t *p, size_t bytes)
{
	return p && memchr(p, 0, bytes) ? (const char *)p : NULL;
}

static void read_identity(struct elf_file *ef)
{
	uint64_t table, idx, bytes;
	Elf_Scn *scn = NULL;
	const uint8_t *p;
	GElf_Phdr ph;
	size_t have;

	if (elf_getshdrstrndx(ef->elf, &ef->names_idx) || !has_strings(ef, ef->names_idx))
		ef->names_idx = 0;
	/* Sections first: in a split-off debug file the segments' offsets are not valid. */
	elf_file_each_note(ef, false, note_identity, ef);
	elf_file_each_note(ef, true, note_identity, ef);
	while ((scn = elf_nextscn(ef->elf, scn))) {
		const char *name = elf_file_section_name(ef, scn);

		if (!strcmp(name, ".gopclntab") || !strcmp(name, ".go.buildinfo") ||
		    !strcmp(name, ".data.rel.ro.gopclntab"))
			ef->is_go = true;
	}
	if (elf_file_phdr(ef, PT_INTERP, &ph)) {
		bytes = ph.p_filesz < STRING_BYTES_CAP ? ph.p_filesz : STRING_BYTES_CAP;
		ef->interp = string_in(elf_image_get(&ef->im, ph.p_offset, bytes), bytes);
	}
	if (elf_file_phdr(ef, PT_DYNAMIC, &ph)) {
		bytes = ph.p_filesz < DYNAMIC_BYTES_CAP ? ph.p_filesz : DYNAMIC_BYTES_CAP;
		if (elf_image_get(&ef->im, ph.p_offset, bytes))
			ef->dynamic = elf_getdata_rawchunk(ef->elf, (int64_t)ph.p_offset, bytes,
							   ELF_T_DYN);
	}
	if (!elf_file_dynamic(ef, DT_SONAME, &idx) && !elf_file_dynamic(ef, DT_STRTAB, &table) &&
	    table + idx >= table) {
		p = elf_file_at(ef, table + idx, STRING_BYTES_CAP, &have);
		ef->soname = string_in(p, have);
	}
}

/* Takes over im. budget NULL: use the file's own. */
static int open_image(struct elf_image *im, struct elf_budget *budget, struct elf_file **ret)
{
	struct elf_file *ef = calloc(1, sizeof(*ef));
	int err;

	if (!ef) {
		elf_image_close(im);
		return -ENOMEM;
	}
	elf_budget_init(&ef->own_budget, im->bytes);
	ef->budget = budget ? budget : &ef->own_budget;
	ef->im = *im;
	ef->im.budget = ef->budget;
	err = open_elf(ef);
	if (!err)
		err = read_segments(ef);
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
	struct elf_image im = { .fd = -1 };
	int err = elf_image_open_fd(fd, &im);

	return err ? err : open_image(&im, NULL, ret);
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
	struct elf_image im = { .fd = -1 };
	int err = elf_image_open_mem(image, bytes, &im);

	return err ? err : open_image(&im, NULL, ret);
}

int elf_file_open_part(const struct elf_file *whole, const void *image, size_t bytes,
		       struct elf_file **ret)
{
	struct elf_image im = { .fd = -1 };
	int err = elf_image_open_mem(image, bytes, &im);

	return err ? err : open_image(&im, whole->budget, ret);
}

void elf_file_close(struct elf_file *ef)
{
	struct unpacked *u;

	if (!ef)
		return;
	vec_each(&ef->unpacked, u)
		free(u->data);
	vec_release(&ef->unpacked);
	vec_release(&ef->segments);
	elf_end(ef->elf);
	elf_image_close(&ef->im);
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

Elf *elf_file_elf(const struct elf_file *ef)
{
	return ef->elf;
}

const char *elf_file_section_name(const struct elf_file *ef, Elf_Scn *scn)
{
	const char *name = NULL;
	GElf_Shdr sh;

	if (ef->names_idx && gelf_getshdr(scn, &sh))
		name = elf_strptr(ef->elf, ef->names_idx, sh.sh_name);
	return name ? name : "";
}

Elf_Scn *elf_file_find(const struct elf_file *ef, const char *name)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(ef->elf, scn)) && elf_file_step(ef, 1))
		if (!strcmp(elf_file_section_name(ef, scn), name) && gelf_getshdr(scn, &sh) &&
		    sh.sh_type != SHT_NOBITS && sh.sh_type != SHT_NULL)
			return scn;
	return NULL;
}

Elf_Data *elf_file_data(const struct elf_file *ef, Elf_Scn *scn)
{
	GElf_Shdr sh;

	if (!gelf_getshdr(scn, &sh) || sh.sh_type == SHT_NOBITS || sh.sh_type == SHT_NULL ||
	    !elf_image_get(&ef->im, sh.sh_offset, sh.sh_size))
		return NULL;
	return elf_rawdata(scn, NULL);
}

int decompress(uint32_t type, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
	uLongf got = out_bytes;

	switch (type) {
	case ELFCOMPRESS_ZLIB:
		return uncompress(out, &got, in, in_bytes) == Z_OK && got == out_bytes ? 0 :
											 -ENOEXEC;
	case ELFCOMPRESS_ZSTD:
		return ZSTD_decompress(out, out_bytes, in, in_bytes) == out_bytes ? 0 : -ENOEXEC;
	}
	return -ENOEXEC;
}

static int unpack(struct elf_file *ef, Elf_Scn *scn, const Elf_Data *packed, struct unpacked *ret)
{
	Elf64_Chdr ch; /* not gelf_getchdr(), which calls elf_getdata() */
	int err;

	if (packed->d_size < sizeof(ch))
		return -ENOEXEC;
	memcpy(&ch, packed->d_buf, sizeof(ch));
	if (ch.ch_size > UNPACKED_BYTES_CAP)
		return -EFBIG;
	if (ch.ch_type == ELFCOMPRESS_ZLIB && ch.ch_size > packed->d_size * ZLIB_RATIO_CAP)
		return -ENOEXEC; /* the size is not too large, but false */
	if (!elf_file_fill(ef, ch.ch_size) || !elf_file_step(ef, ch.ch_size / UNPACKED_PER_STEP))
		return -EFBIG;
	*ret = (struct unpacked){ scn, malloc(ch.ch_size + 1), ch.ch_size };
	if (!ret->data)
		return -ENOMEM;
	err = decompress(ch.ch_type, (const uint8_t *)packed->d_buf + sizeof(ch),
			 packed->d_size - sizeof(ch), ret->data, ret->bytes);
	if (!err)
		err = vec_push(&ef->unpacked, *ret);
	if (err)
		free(ret->data);
	return err;
}

int elf_file_section(struct elf_file *ef, const char *name, struct elf_section *ret)
{
	Elf_Scn *scn = elf_file_find(ef, name);
	struct unpacked *known, now = { 0 };
	Elf_Data *data;
	GElf_Shdr sh;
	int err;

	if (!scn || !gelf_getshdr(scn, &sh))
		return -ENOENT;
	data = elf_file_data(ef, scn);
	if (!data)
		return -ENOEXEC;
	*ret = (struct elf_section){ data->d_buf, data->d_size, sh.sh_addr };
	if (!(sh.sh_flags & SHF_COMPRESSED))
		return 0;
	vec_each(&ef->unpacked, known)
		if (known->scn == scn)
			now = *known;
	err = now.scn ? 0 : unpack(ef, scn, data, &now);
	if (err)
		return err;
	ret->data = now.data;
	ret->bytes = now.bytes;
	return 0;
}

bool elf_file_symtab(const struct elf_file *ef, uint32_t type, struct elf_symtab *ret)
{
	GElf_Shdr sh = { 0 };
	Elf_Scn *scn = NULL;
	Elf_Data *syms;

	do
		scn = elf_nextscn(ef->elf, scn);
	while (scn && (!gelf_getshdr(scn, &sh) || sh.sh_type != type));
	syms = table_data(ef, scn);
	if (!syms || !has_strings(ef, sh.sh_link))
		return false;
	*ret = (struct elf_symtab){ ef->elf, syms, syms->d_size / sizeof(Elf64_Sym), sh.sh_link };
	return true;
}

const char *elf_symtab_get(const struct elf_symtab *t, size_t idx, GElf_Sym *ret)
{
	const char *name = NULL;

	if (gelf_getsym(t->syms, (int)idx, ret) && ret->st_name)
		name = elf_strptr(t->elf, t->names_idx, ret->st_name);
	return name && *name ? name : NULL;
}

static int each_note_in(const struct elf_file *ef, Elf_Data *data, elf_note_fn *fn, void *ctx)
{
	size_t off = 0, name_off, desc_off;
	GElf_Nhdr note;
	int rc = 0;

	while (!rc && data && elf_file_step(ef, 1) &&
	       (off = gelf_getnote(data, off, &note, &name_off, &desc_off)))
		rc = fn(ctx, &note, (const char *)data->d_buf + name_off,
			(const uint8_t *)data->d_buf + desc_off);
	return rc;
}

/* The notes of a program header. What is not aligned is no note; libelf would copy it. */
static Elf_Data *segment_notes(const struct elf_file *ef, const GElf_Phdr *ph)
{
	uint64_t align = ph->p_align == 8 ? 8 : 4;

	if (ph->p_type != PT_NOTE || ph->p_offset % align ||
	    !elf_image_get(&ef->im, ph->p_offset, ph->p_filesz))
		return NULL;
	return elf_getdata_rawchunk(ef->elf, (int64_t)ph->p_offset, ph->p_filesz,
				    align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
}

int elf_file_each_note(const struct elf_file *ef, bool from_segments, elf_note_fn *fn, void *ctx)
{
	Elf_Scn *scn = NULL;
	GElf_Phdr ph;
	GElf_Shdr sh;
	int rc = 0;

	for (size_t i = 0; from_segments && !rc && i < PHDRS_CAP; i++)
		if (gelf_getphdr(ef->elf, (int)i, &ph))
			rc = each_note_in(ef, segment_notes(ef, &ph), fn, ctx);
	while (!from_segments && !rc && (scn = elf_nextscn(ef->elf, scn)))
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_NOTE)
			rc = each_note_in(ef, elf_file_data(ef, scn), fn, ctx);
	return rc;
}

const GElf_Ehdr *elf_file_ehdr(const struct elf_file *ef)
{
	return &ef->eh;
}

bool elf_file_is_64(const struct elf_file *ef)
{
	return ef->eh.e_ident[EI_CLASS] == ELFCLASS64;
}

void elf_build_id_to_hex(const uint8_t *id, size_t bytes, char *buf)
{
	*buf = '\0';
	for (size_t i = 0; i < bytes && bytes <= BUILD_ID_BYTES_CAP; i++)
		snprintf(buf + 2 * i, 3, "%02x", id[i]);
}

void elf_file_build_id_hex(const struct elf_file *ef, char *buf)
{
	memcpy(buf, ef->build_id_hex, sizeof(ef->build_id_hex));
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

	if (ef->interp || ef->soname)
		return false;
	if (ef->eh.e_type == ET_EXEC)
		return true;
	return ef->eh.e_type == ET_DYN && !elf_file_dynamic(ef, DT_FLAGS_1, &flags) &&
	       flags & DF_1_PIE;
}

bool elf_file_phdr(const struct elf_file *ef, uint32_t type, GElf_Phdr *ret)
{
	for (size_t i = 0; i < PHDRS_CAP && gelf_getphdr(ef->elf, (int)i, ret); i++)
		if (ret->p_type == type)
			return true;
	return false;
}

int elf_file_dynamic(const struct elf_file *ef, int64_t tag, uint64_t *ret_val)
{
	GElf_Dyn d;

	for (int i = 0; gelf_getdyn(ef->dynamic, i, &d) && d.d_tag != DT_NULL; i++)
		if (d.d_tag == tag) {
			*ret_val = d.d_un.d_val;
			return 0;
		}
	return -ENOENT;
}

const struct elf_segment *elf_file_segments(const struct elf_file *ef, size_t *ret_cnt)
{
	*ret_cnt = ef->segments.cnt;
	return ef->segments.data;
}

/* The next segment after s (NULL: the first) with vaddr in its memory, or (in_file) in its bytes of the file. */
static const struct elf_segment *
next_segment(const struct elf_file *ef, const struct elf_segment *s, uint64_t vaddr, bool in_file)
{
	size_t i = s ? (size_t)(s - ef->segments.data) + 1 : 0;
	size_t steps = (ef->segments.cnt - i) / SEGMENTS_PER_STEP;

	if (steps && !elf_file_step(ef, steps))
		return NULL;
	for (; i < ef->segments.cnt; i++) {
		s = &ef->segments.data[i];
		if (vaddr - s->vaddr < (in_file ? s->file_bytes : s->mem_bytes))
			return s;
	}
	return NULL;
}

const struct elf_segment *elf_file_segment_at(const struct elf_file *ef, uint64_t vaddr)
{
	return next_segment(ef, NULL, vaddr, false);
}

int elf_file_off_to_vaddr(const struct elf_file *ef, uint64_t off, uint64_t *ret_vaddr)
{
	const struct elf_segment *page = NULL, *s;

	vec_each(&ef->segments, s) {
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

int elf_file_code_vaddr(const struct elf_file *ef, uint64_t off, uint64_t *ret_vaddr)
{
	const struct elf_segment *s;

	vec_each(&ef->segments, s)
		if (s->is_exec && off + PAGE_BYTES > s->off && off < s->off + s->file_bytes &&
		    s->vaddr + off >= s->off) {
			*ret_vaddr = s->vaddr + off - s->off;
			return 0;
		}
	return -ENOENT;
}

int elf_file_vaddr_to_off(const struct elf_file *ef, uint64_t vaddr, uint64_t *ret_off)
{
	const struct elf_segment *s = next_segment(ef, NULL, vaddr, true);

	if (!s)
		return -ENOENT;
	*ret_off = s->off + (vaddr - s->vaddr);
	return 0;
}

const uint8_t *elf_file_at(const struct elf_file *ef, uint64_t vaddr, uint64_t max,
			   size_t *ret_bytes)
{
	const struct elf_segment *s = NULL;
	const uint8_t *p;

	*ret_bytes = 0;
	while ((s = next_segment(ef, s, vaddr, true))) {
		uint64_t off = s->off + (vaddr - s->vaddr);
		uint64_t bytes = s->file_bytes - (vaddr - s->vaddr);

		if (off >= ef->im.bytes)
			continue;
		if (bytes > ef->im.bytes - off)
			bytes = ef->im.bytes - off;
		if (bytes > max)
			bytes = max;
		p = elf_image_get(&ef->im, off, bytes);
		*ret_bytes = p ? bytes : 0;
		return p;
	}
	return NULL;
}

const uint8_t *elf_file_read(const struct elf_file *ef, uint64_t vaddr, uint64_t bytes)
{
	size_t have;
	const uint8_t *p = elf_file_at(ef, vaddr, bytes, &have);

	return have == bytes ? p : NULL;
}
