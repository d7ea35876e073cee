/* SPDX-License-Identifier: MIT */
/*
 * unwind_sections.c - see unwind_sections.h.
 *
 * Program headers are read from where the first segment has them in memory: that is where the
 * loader and libgcc look, and a file without them there does not run.
 */
#include "elf/unwind_sections.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "elf/elf_file.h"

#define PHDRS_CAP 512
/* .eh_frame ends at its terminator; this only bounds the search for one in a damaged file. */
#define EH_FRAME_BYTES_CAP (256U << 20)

static int read_at_off(const struct elf_file *ef, uint64_t off, void *buf, size_t bytes)
{
	const uint8_t *data;
	uint64_t vaddr;
	size_t have;
	int err;

	err = elf_file_off_to_vaddr(ef, off, &vaddr);
	if (err)
		return err;
	data = elf_file_at(ef, vaddr, &have);
	if (!data || have < bytes)
		return -ENOENT;
	memcpy(buf, data, bytes);
	return 0;
}

static int find_phdr(const struct elf_file *ef, uint32_t type, Elf64_Phdr *ret)
{
	Elf64_Ehdr eh;
	unsigned int i;
	int err;

	err = read_at_off(ef, 0, &eh, sizeof(eh));
	if (err)
		return err;
	for (i = 0; i < eh.e_phnum && i < PHDRS_CAP; i++) {
		if (read_at_off(ef, eh.e_phoff + i * sizeof(*ret), ret, sizeof(*ret)))
			return -ENOENT;
		if (ret->p_type == type)
			return 0;
	}
	return -ENOENT;
}

/* Where the .eh_frame_hdr at vaddr says that .eh_frame is. */
static int eh_frame_vaddr(const struct elf_file *ef, uint64_t hdr_vaddr, uint64_t *ret)
{
	struct cfi_cursor c = { 0 };
	uint64_t version, encoding;
	size_t have;

	c.pos = elf_file_at(ef, hdr_vaddr, &have);
	if (!c.pos)
		return -ENOENT;
	c.end = c.pos + have;
	version = cfi_u8(&c);
	encoding = cfi_u8(&c);
	/* encodings of the search table, which is not needed */
	cfi_u8(&c);
	cfi_u8(&c);
	*ret = cfi_pointer(&c, (uint8_t)encoding, hdr_vaddr + 4, hdr_vaddr);
	return version == 1 && !c.is_bad ? 0 : -ENOENT;
}

/*
 * All bytes from vaddr to the end of its segment: elf_file_at() gives them piece by piece, each
 * right behind the one before.
 */
static int segment_rest(const struct elf_file *ef, uint64_t vaddr, struct cfi_section *ret)
{
	const uint8_t *piece;
	size_t have;

	memset(ret, 0, sizeof(*ret));
	ret->vaddr = vaddr;
	while (ret->bytes < EH_FRAME_BYTES_CAP) {
		piece = elf_file_at(ef, vaddr + ret->bytes, &have);
		if (!piece || !have || (ret->data && piece != ret->data + ret->bytes))
			break;
		if (!ret->data)
			ret->data = piece;
		ret->bytes += have;
	}
	return ret->data ? 0 : -ENOENT;
}

int unwind_eh_frame(struct elf_file *ef, struct cfi_section *ret)
{
	struct elf_section s;
	Elf64_Phdr ph;
	uint64_t vaddr;
	int err;

	err = elf_file_section(ef, ".eh_frame", &s);
	if (!err && s.bytes) {
		*ret = (struct cfi_section){ .data = s.data, .bytes = s.bytes, .vaddr = s.vaddr };
		return 0;
	}
	err = find_phdr(ef, PT_GNU_EH_FRAME, &ph);
	if (err)
		return err;
	err = eh_frame_vaddr(ef, ph.p_vaddr, &vaddr);
	if (err)
		return err;
	err = segment_rest(ef, vaddr, ret);
	ret->ends_at_zero = true;
	return err;
}

int unwind_debug_frame(struct elf_file *ef, struct cfi_section *ret)
{
	struct elf_section s;
	int err;

	err = elf_file_section(ef, ".debug_frame", &s);
	if (err)
		return err;
	*ret = (struct cfi_section){
		.data = s.data,
		.bytes = s.bytes,
		.is_debug_frame = true,
	};
	return s.bytes ? 0 : -ENOENT;
}

int unwind_entry(const struct elf_file *ef, uint64_t *ret_vaddr)
{
	const char *soname = elf_file_soname(ef);
	Elf64_Ehdr eh;
	int err;

	/* A library has none, or a main() for fun; the loader is entered before anybody else. */
	if (soname && !strstr(soname, "ld-"))
		return -ENOENT;
	err = read_at_off(ef, 0, &eh, sizeof(eh));
	if (err)
		return err;
	if (!eh.e_entry)
		return -ENOENT;
	*ret_vaddr = eh.e_entry;
	return 0;
}
