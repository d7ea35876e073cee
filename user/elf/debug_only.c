/* SPDX-License-Identifier: MIT */
/*
 * debug_only.c - see debug_only.h.
 *
 * The reduced file is, in this order: the ELF header, the program headers (they keep the program's offsets and
 * addresses, from which symbolisers compute, but have no bytes in the file), the sections that are kept, and a new
 * section table. Only the two ends are made in memory; the part between is read from the original on demand, so a file
 * of gigabytes costs no memory.
 *
 * Sections are kept by name and type, not because they are "not loaded": other things that compilers leave behind
 * (bitcode, metadata of libraries) can be as good as the source.
 */
#include "elf/debug_only.h"

#include "base/names.h"
#include "base/vec.h"
#include "elf/elf_file.h"

/* Cap of alignments: a section's own may be a page, but nothing here is mapped. */
#define ALIGN_CAP 16

/* [off, off + bytes) of the reduced file is at from_off of the original. */
struct piece {
	uint64_t off, bytes, from_off;
};

struct debug_only {
	uint8_t *head, *tail;
	uint64_t head_bytes, tail_bytes, tail_off;
	VEC(struct piece) pieces; /* sorted by off */
};

static bool is_dwarf(const char *name)
{
	return begins(name, ".debug_") || begins(name, ".zdebug_");
}

static bool is_go_table(const char *name)
{
	return !strcmp(name, ".gopclntab") || !strcmp(name, ".data.rel.ro.gopclntab");
}

static bool stays(const GElf_Shdr *sh, const char *name)
{
	static const char *const names[] = { ".symtab_shndx", ".gnu_debugaltlink",
					     ".gnu_debugdata" };

	return sh->sh_type == SHT_NOTE || sh->sh_type == SHT_SYMTAB || sh->sh_type == SHT_DYNSYM ||
	       equals_one_of(name, names, ARRAY_CNT(names)) || is_dwarf(name) || is_go_table(name);
}

/* Choose the sections to keep, by index. The sections with the names of symbols and sections are among them,
 * whatever they are called. NULL: out of memory. */
static bool *choose(const struct elf_file *ef, size_t cnt)
{
	bool *chosen = calloc(cnt + 1, sizeof(*chosen));
	Elf *elf = elf_file_elf(ef);
	Elf_Scn *scn = NULL;
	size_t names_idx;
	GElf_Shdr sh;

	if (!chosen)
		return NULL;
	if (!elf_getshdrstrndx(elf, &names_idx) && names_idx < cnt)
		chosen[names_idx] = true;
	while ((scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &sh)) {
		if (stays(&sh, elf_file_section_name(ef, scn)))
			chosen[elf_ndxscn(scn)] = true;
		if ((sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM) && sh.sh_link < cnt)
			chosen[sh.sh_link] = true;
	}
	while ((scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &sh))
		if (sh.sh_type == SHT_NOBITS || sh.sh_type == SHT_NULL)
			chosen[elf_ndxscn(scn)] = false;
	return chosen;
}

static bool has_names(const struct elf_file *ef)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(elf_file_elf(ef), scn)) && gelf_getshdr(scn, &sh)) {
		const char *name = elf_file_section_name(ef, scn);

		if (sh.sh_type == SHT_NOBITS || !sh.sh_size)
			continue;
		if (sh.sh_type == SHT_SYMTAB || is_go_table(name) || !strcmp(name, ".debug_info") ||
		    !strcmp(name, ".zdebug_info"))
			return true;
	}
	return false;
}

/* Convert an offset of the original to one of the reduced file; false: its bytes were not kept. */
static bool find_new_off(const struct debug_only *d, uint64_t off, uint64_t bytes, uint64_t *ret)
{
	const struct piece *p;

	vec_each(&d->pieces, p) {
		if (off < p->from_off || off - p->from_off > p->bytes ||
		    bytes > p->bytes - (off - p->from_off))
			continue;
		*ret = p->off + (off - p->from_off);
		return true;
	}
	return false;
}

static void reduce_phdr(const struct debug_only *d, Elf64_Phdr *ph)
{
	uint64_t off;

	if (ph->p_type == PT_NOTE && find_new_off(d, ph->p_offset, ph->p_filesz, &off))
		ph->p_offset = off;
	else
		ph->p_filesz = 0;
	/* Headers that describe the bytes would be wrong. */
	if (ph->p_type == PT_PHDR || ph->p_type == PT_INTERP || ph->p_type == PT_DYNAMIC)
		ph->p_type = PT_NULL;
}

/* Make the ELF header and the program headers after it. */
static int make_head(struct debug_only *d, const struct elf_file *ef, size_t phdr_cnt,
		     size_t section_cnt)
{
	Elf64_Ehdr eh = *elf_file_ehdr(ef);
	Elf64_Phdr ph;
	size_t names_idx;

	d->head = malloc(d->head_bytes);
	if (!d->head)
		return -ENOMEM;
	eh.e_ehsize = sizeof(eh);
	eh.e_phoff = phdr_cnt ? sizeof(eh) : 0;
	eh.e_phentsize = sizeof(Elf64_Phdr);
	eh.e_shentsize = sizeof(Elf64_Shdr);
	eh.e_shoff = d->tail_off;
	eh.e_shnum = (Elf64_Half)section_cnt;
	if (!elf_getshdrstrndx(elf_file_elf(ef), &names_idx))
		eh.e_shstrndx = (Elf64_Half)names_idx;
	memcpy(d->head, &eh, sizeof(eh));
	for (size_t i = 0; i < phdr_cnt && gelf_getphdr(elf_file_elf(ef), (int)i, &ph); i++) {
		reduce_phdr(d, &ph);
		memcpy(d->head + sizeof(eh) + i * sizeof(ph), &ph, sizeof(ph));
	}
	return 0;
}

static uint64_t align_up(uint64_t off, uint64_t align)
{
	if (align < 2)
		return off;
	if (align > ALIGN_CAP)
		align = ALIGN_CAP;
	return (off + align - 1) / align * align;
}

/* Place the sections that are kept, and write the section table with the places. */
static int place_sections(struct debug_only *d, const struct elf_file *ef, const bool *chosen)
{
	Elf *elf = elf_file_elf(ef);
	uint64_t at = d->head_bytes;
	size_t file_bytes;
	Elf_Scn *scn = NULL;
	Elf64_Shdr sh;
	int err = 0;

	elf_rawfile(elf, &file_bytes);
	while (!err && (scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &sh)) {
		size_t i = elf_ndxscn(scn);

		if (chosen[i]) {
			struct piece piece = { .bytes = sh.sh_size, .from_off = sh.sh_offset };

			if (sh.sh_offset > file_bytes || sh.sh_size > file_bytes - sh.sh_offset)
				return -ENOEXEC;
			piece.off = at = align_up(at, sh.sh_addralign);
			/* The same bytes may be claimed by a million sections. */
			if (at + sh.sh_size > file_bytes + d->head_bytes + ALIGN_CAP * (i + 1))
				return -ENOEXEC;
			sh.sh_offset = at;
			at += sh.sh_size;
			err = sh.sh_size ? vec_push(&d->pieces, piece) : 0;
		} else if (sh.sh_type != SHT_NULL) {
			sh.sh_type = SHT_NOBITS;
			sh.sh_offset = at;
			/* With the flag a reader would look for a compression header. */
			sh.sh_flags &= ~(uint64_t)SHF_COMPRESSED;
		}
		memcpy(d->tail + i * sizeof(sh), &sh, sizeof(sh));
	}
	d->tail_off = align_up(at, ALIGN_CAP);
	return err;
}

int debug_only_new(struct elf_file *ef, struct debug_only **ret)
{
	size_t phdr_cnt, section_cnt;
	struct debug_only *d;
	bool *chosen = NULL;
	int err = -ENOMEM;

	if (!elf_file_is_64(ef))
		return -ENOTSUP;
	if (!has_names(ef))
		return -ENODATA;
	/* More headers than the fields can count: no linker makes such a program. */
	if (elf_getphdrnum(elf_file_elf(ef), &phdr_cnt) ||
	    elf_getshdrnum(elf_file_elf(ef), &section_cnt) ||
	    elf_file_ehdr(ef)->e_phnum == PN_XNUM || section_cnt >= SHN_LORESERVE)
		return -ENOTSUP;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->tail_bytes = section_cnt * sizeof(Elf64_Shdr);
	d->tail = calloc(1, d->tail_bytes);
	d->head_bytes = sizeof(Elf64_Ehdr) + phdr_cnt * sizeof(Elf64_Phdr);
	chosen = choose(ef, section_cnt);
	if (d->tail && chosen)
		err = place_sections(d, ef, chosen);
	free(chosen);
	if (!err)
		err = make_head(d, ef, phdr_cnt, section_cnt);
	if (err)
		debug_only_free(d);
	else
		*ret = d;
	return err;
}

void debug_only_free(struct debug_only *d)
{
	if (!d)
		return;
	vec_release(&d->pieces);
	free(d->head);
	free(d->tail);
	free(d);
}

uint64_t debug_only_bytes(const struct debug_only *d)
{
	return d->tail_off + d->tail_bytes;
}

/* FNV-1a */
static uint64_t fold_hash(uint64_t hash, const uint8_t *p, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++)
		hash = (hash ^ p[i]) * 0x100000001b3ULL;
	return hash;
}

uint64_t debug_only_hash(const struct debug_only *d)
{
	uint64_t hash = fold_hash(0xcbf29ce484222325ULL, d->head, d->head_bytes);

	return fold_hash(hash, d->tail, d->tail_bytes);
}

/* The part of [off, off + bytes) that lies in [at, at + size); false: none. */
static bool overlap(uint64_t off, size_t bytes, uint64_t at, uint64_t size, uint64_t *ret_from,
		    uint64_t *ret_bytes)
{
	uint64_t from = off > at ? off : at;
	uint64_t end = off + bytes < at + size ? off + bytes : at + size;

	if (from >= end)
		return false;
	*ret_from = from;
	*ret_bytes = end - from;
	return true;
}

static int read_piece(int fd, uint64_t off, uint8_t *buf, uint64_t bytes)
{
	while (bytes) {
		ssize_t n = pread(fd, buf, bytes, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		buf += n;
		off += (uint64_t)n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

/* The first piece that ends after off. */
static size_t find_piece(const struct debug_only *d, uint64_t off)
{
	size_t i = vec_first_behind(&d->pieces, off, off);
	const struct piece *before = i ? &d->pieces.data[i - 1] : NULL;

	return before && before->off + before->bytes > off ? i - 1 : i;
}

ssize_t debug_only_read(const struct debug_only *d, int fd, uint64_t off, void *buf, size_t bytes)
{
	uint64_t total = debug_only_bytes(d), from, n;
	uint8_t *to = buf;

	if (off >= total)
		return 0;
	if (bytes > total - off)
		bytes = total - off;
	memset(to, 0, bytes); /* padding between the pieces */
	if (overlap(off, bytes, 0, d->head_bytes, &from, &n))
		memcpy(to + (from - off), d->head + from, n);
	if (overlap(off, bytes, d->tail_off, d->tail_bytes, &from, &n))
		memcpy(to + (from - off), d->tail + (from - d->tail_off), n);
	for (size_t i = find_piece(d, off); i < d->pieces.cnt; i++) {
		const struct piece *p = &d->pieces.data[i];
		int err;

		if (!overlap(off, bytes, p->off, p->bytes, &from, &n))
			break;
		err = read_piece(fd, p->from_off + (from - p->off), to + (from - off), n);
		if (err)
			return err;
	}
	return (ssize_t)bytes;
}
