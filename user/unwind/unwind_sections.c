/* SPDX-License-Identifier: MIT */
/*
 * unwind_sections.c - see unwind_table_priv.h.
 *
 * Program headers are read where the first segment has them in memory: the loader and libgcc look there, and a file
 * without them there does not run.
 */
#include "unwind/unwind_table_priv.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "elf/elf_file.h"

#define PHDRS_CAP 512
/* .eh_frame ends at its terminator; this only bounds the search for the terminator in a damaged file. */
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

/* Read the address of .eh_frame from the .eh_frame_hdr at hdr_vaddr. */
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
	/* the encodings of the search table are not needed */
	cfi_u8(&c);
	cfi_u8(&c);
	*ret = cfi_pointer(&c, (uint8_t)encoding, hdr_vaddr + 4, hdr_vaddr);
	return version == 1 && !c.is_bad ? 0 : -ENOENT;
}

/* elf_file_at() returns pieces; join those that lie right behind each other. */
const uint8_t *unwind_code(const struct elf_file *ef, uint64_t vaddr, uint64_t bytes,
			   size_t *ret_bytes)
{
	const uint8_t *data = NULL, *piece;
	size_t have, sum = 0;

	while (sum < bytes) {
		piece = elf_file_at(ef, vaddr + sum, &have);
		if (!piece || !have || (data && piece != data + sum))
			break;
		if (!data)
			data = piece;
		sum += have;
	}
	*ret_bytes = sum < bytes ? sum : (size_t)bytes;
	return data;
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
	memset(ret, 0, sizeof(*ret));
	ret->vaddr = vaddr;
	ret->ends_at_zero = true;
	ret->data = unwind_code(ef, vaddr, EH_FRAME_BYTES_CAP, &ret->bytes);
	return ret->data ? 0 : -ENOENT;
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

	/* A library has no entry point, or a main() for fun; the loader is entered first. */
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

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

struct entries {
	VEC(uint64_t) v;
};

static int add_symbols(struct elf_file *ef, const char *section, struct entries *ret)
{
	struct elf_section s;
	Elf64_Sym sym;
	size_t off;
	int err = 0;

	if (elf_file_section(ef, section, &s))
		return 0;
	for (off = 0; !err && off + sizeof(sym) <= s.bytes && elf_file_step(ef, 1);
	     off += sizeof(sym)) {
		memcpy(&sym, s.data + off, sizeof(sym));
		if (ELF64_ST_TYPE(sym.st_info) == STT_FUNC && sym.st_shndx != SHN_UNDEF)
			err = vec_push(&ret->v, sym.st_value);
	}
	return err;
}

/* Add the pointers in data: some of them lead to functions. */
static int add_relocations(struct elf_file *ef, struct entries *ret)
{
	struct elf_section s;
	Elf64_Rela rela;
	size_t off;
	int err = 0;

	if (elf_file_section(ef, ".rela.dyn", &s))
		return 0;
	for (off = 0; !err && off + sizeof(rela) <= s.bytes && elf_file_step(ef, 1);
	     off += sizeof(rela)) {
		memcpy(&rela, s.data + off, sizeof(rela));
		if (ELF64_R_TYPE(rela.r_info) == R_X86_64_RELATIVE)
			err = vec_push(&ret->v, (uint64_t)rela.r_addend);
	}
	return err;
}

int unwind_entries(struct elf_file *ef, uint64_t **ret, size_t *ret_cnt)
{
	struct entries entries = { 0 };
	int err;

	err = add_symbols(ef, ".symtab", &entries);
	if (!err)
		err = add_symbols(ef, ".dynsym", &entries);
	if (!err)
		err = add_relocations(ef, &entries);
	if (err) {
		vec_release(&entries.v);
		return err;
	}
	if (entries.v.cnt)
		qsort(entries.v.data, entries.v.cnt, sizeof(*entries.v.data), by_value);
	*ret = entries.v.data;
	*ret_cnt = entries.v.cnt;
	return 0;
}
