/* SPDX-License-Identifier: MIT */
/*
 * unwind_sections.c - see unwind_table_priv.h.
 */
#include "elf/unwind_table_priv.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "elf/elf_file.h"

/* .eh_frame ends at its terminator; this only bounds the search for the terminator in a damaged file. */
#define EH_FRAME_BYTES_CAP (256U << 20)
#define EH_FRAME_HDR_BYTES 16 /* as far as its pointer to .eh_frame may reach */

/* Read the address of .eh_frame from the .eh_frame_hdr at hdr_vaddr. */
static int eh_frame_vaddr(const struct elf_file *ef, uint64_t hdr_vaddr, uint64_t *ret)
{
	struct cfi_cursor c = { 0 };
	uint64_t version, encoding;
	size_t have;

	c.pos = elf_file_at(ef, hdr_vaddr, EH_FRAME_HDR_BYTES, &have);
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

int unwind_eh_frame(struct elf_file *ef, struct cfi_section *ret)
{
	struct elf_section s;
	GElf_Phdr ph;
	uint64_t vaddr;
	int err;

	err = elf_file_section(ef, ".eh_frame", &s);
	if (!err && s.bytes) {
		*ret = (struct cfi_section){ .data = s.data, .bytes = s.bytes, .vaddr = s.vaddr };
		return 0;
	}
	if (!elf_file_phdr(ef, PT_GNU_EH_FRAME, &ph))
		return -ENOENT;
	err = eh_frame_vaddr(ef, ph.p_vaddr, &vaddr);
	if (err)
		return err;
	memset(ret, 0, sizeof(*ret));
	ret->vaddr = vaddr;
	ret->ends_at_zero = true;
	ret->data = elf_file_at(ef, vaddr, EH_FRAME_BYTES_CAP, &ret->bytes);
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

	/* A library has no entry point, or a main() for fun; the loader is entered first. */
	if (soname && !strstr(soname, "ld-"))
		return -ENOENT;
	*ret_vaddr = elf_file_ehdr(ef)->e_entry;
	return *ret_vaddr ? 0 : -ENOENT;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

struct entries {
	VEC(uint64_t) v;
};

static int add_symbols(struct elf_file *ef, uint32_t type, struct entries *ret)
{
	struct elf_symtab t;
	GElf_Sym sym;
	int err = 0;

	if (!elf_file_symtab(ef, type, &t))
		return 0;
	for (size_t i = 0; !err && i < t.cnt && elf_file_step(ef, 1); i++) {
		if (gelf_getsym(t.syms, (int)i, &sym) && GELF_ST_TYPE(sym.st_info) == STT_FUNC &&
		    sym.st_shndx != SHN_UNDEF)
			err = vec_push(&ret->v, sym.st_value);
	}
	return err;
}

/* Add the pointers in data: some of them lead to functions. */
static int add_relocations(struct elf_file *ef, struct entries *ret)
{
	Elf_Data *data = elf_file_data(ef, elf_file_find(ef, ".rela.dyn"));
	GElf_Rela rela;
	int err = 0;

	for (int i = 0; !err && gelf_getrela(data, i, &rela) && elf_file_step(ef, 1); i++) {
		if (GELF_R_TYPE(rela.r_info) == R_X86_64_RELATIVE)
			err = vec_push(&ret->v, (uint64_t)rela.r_addend);
	}
	return err;
}

int unwind_entries(struct elf_file *ef, uint64_t **ret, size_t *ret_cnt)
{
	struct entries entries = { 0 };
	int err;

	err = add_symbols(ef, SHT_SYMTAB, &entries);
	if (!err)
		err = add_symbols(ef, SHT_DYNSYM, &entries);
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
