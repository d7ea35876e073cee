/* SPDX-License-Identifier: MIT */
/*
 * tls_symbol.c - where a thread-local variable of a file is in a thread.
 *
 * The value of a TLS symbol is an offset in the file's TLS block. Where that block is in a thread:
 *
 * - The block of an executable is at a fixed distance from the thread pointer tp. The distance follows from
 *   PT_TLS, and linkers put it into the code. It is the smallest one that keeps the
 *   alignment (addresses congruent to p_vaddr modulo p_align),
 *	x86-64 (variant II, below tp)	tp - (memsz + (-(vaddr + memsz) & (align - 1)))
 *	arm64 (variant I, above tp)	tp + 16 + ((vaddr - 16) & (align - 1))
 *   These are the formulas of glibc's and musl's loaders and of lld. They differ from a rounding
 *   of memsz only when the segment does not begin aligned, which GNU ld avoids. (A static glibc
 *   program rounds whatever vaddr is; it agrees for every file that GNU ld makes.)
 *
 * - The block of a library is placed by the loader. Only the slots that the loader fills for the library's own
 *   code tell where. So this finds such a slot: the slot of the variable itself, else
 *   the slot of another variable of the file. The dynamic relocations name the slots. A slot without
 *   a symbol (or of a symbol that nobody can interpose) is surely about this file; a slot of a
 *   global symbol nearly always is, and is the last choice.
 *
 * Symbols are found by section: strip keeps .dynsym. Relocations are found by PT_DYNAMIC.
 */
#include "elf/elf_symbols.h"

#include "elf/elf_file.h"

#ifndef DF_1_PIE
#define DF_1_PIE 0x08000000
#endif
#define ALIGN_CAP (1ULL << 20)
#define TCB_BYTES_ARM64 16

struct search {
	const struct elf_file *ef;
	struct elf_symtab dyn; /* cnt 0: none */
	const char *name;
	GElf_Sym sym;
	int best; /* rank of the slot in ret; 0: none yet */
	struct tls_symbol *ret;
};

/* Find the definition of name; types: allowed types (bit mask of STT_*). */
static bool find_in(const struct elf_file *ef, uint32_t table, const char *name, unsigned int types,
		    GElf_Sym *ret)
{
	struct elf_symtab t;

	if (!elf_file_symtab(ef, table, &t))
		return false;
	for (size_t i = 1; i < t.cnt && elf_file_step(ef, 1); i++) {
		const char *found = elf_symtab_get(&t, i, ret);

		if (found && ret->st_shndx != SHN_UNDEF &&
		    types >> GELF_ST_TYPE(ret->st_info) & 1 && !strcmp(found, name))
			return true;
	}
	return false;
}

/* Look in the exported symbols, then (a static program exports nothing) in the full table. */
static bool find_symbol(const struct elf_file *ef, const char *name, unsigned int types,
			GElf_Sym *ret)
{
	return find_in(ef, SHT_DYNSYM, name, types, ret) ||
	       find_in(ef, SHT_SYMTAB, name, types, ret);
}

static bool is_executable(const struct elf_file *ef)
{
	uint64_t flags = 0;

	if (elf_file_ehdr(ef)->e_type == ET_EXEC)
		return true;
	if (!elf_file_dynamic(ef, DT_FLAGS_1, &flags) && flags & DF_1_PIE)
		return true;
	/* From before linkers set the flag: libc has an interpreter as well, but also a soname. */
	return elf_file_interp(ef) && !elf_file_soname(ef);
}

/* Distance of the executable's block from the thread pointer. */
static int block_distance(const struct elf_file *ef, int64_t *ret)
{
	GElf_Phdr tls;
	uint64_t align;

	if (!elf_file_phdr(ef, PT_TLS, &tls))
		return -ENOENT;
	align = tls.p_align ? tls.p_align : 1;
	if (align > ALIGN_CAP || align & (align - 1) || tls.p_memsz > INT32_MAX)
		return -ENOEXEC;
	if (elf_file_ehdr(ef)->e_machine == EM_X86_64)
		*ret = -(int64_t)(tls.p_memsz + (-(tls.p_vaddr + tls.p_memsz) & (align - 1)));
	else
		*ret = (int64_t)(TCB_BYTES_ARM64 + ((tls.p_vaddr - TCB_BYTES_ARM64) & (align - 1)));
	return 0;
}

static bool slot_place(const struct elf_file *ef, uint32_t type, enum tls_place *ret)
{
	bool is_x86 = elf_file_ehdr(ef)->e_machine == EM_X86_64;

	if (type == (is_x86 ? R_X86_64_TPOFF64 : R_AARCH64_TLS_TPREL))
		*ret = TLS_PLACE_OFFSET_SLOT;
	else if (type == (is_x86 ? R_X86_64_TLSDESC : R_AARCH64_TLSDESC))
		*ret = TLS_PLACE_DESC_SLOT;
	else if (type == (is_x86 ? R_X86_64_DTPMOD64 : R_AARCH64_TLS_DTPMOD))
		*ret = TLS_PLACE_MODULE_SLOT;
	else
		return false;
	return true;
}

/* Is the symbol preemptible? */
static bool is_interposable(const GElf_Sym *sym)
{
	return GELF_ST_BIND(sym->st_info) != STB_LOCAL &&
	       GELF_ST_VISIBILITY(sym->st_other) == STV_DEFAULT;
}

static void try_slot(struct search *s, const GElf_Rela *r)
{
	uint64_t idx = GELF_R_SYM(r->r_info);
	struct tls_symbol got = { .slot_vaddr = r->r_offset };
	const char *name = NULL;
	GElf_Sym sym = { 0 };
	int rank;

	if (!slot_place(s->ef, GELF_R_TYPE(r->r_info), &got.place))
		return;
	if (idx) {
		if (idx >= s->dyn.cnt)
			return;
		name = elf_symtab_get(&s->dyn, idx, &sym);
		if (sym.st_shndx == SHN_UNDEF)
			return;
	}
	got.slot_block_off =
		(int64_t)(sym.st_value + (uint64_t)r->r_addend); /* any file: may wrap */
	/* Without a symbol, the addend of a descriptor or offset is the variable's place. A module id has no addend:
	 * its pair may be a local-dynamic one. */
	if (idx)
		got.is_own_slot = !r->r_addend && name && !strcmp(name, s->name);
	else
		got.is_own_slot = got.place != TLS_PLACE_MODULE_SLOT &&
				  got.slot_block_off == (int64_t)s->sym.st_value;
	rank = 1 + (TLS_PLACE_MODULE_SLOT - got.place);
	if (got.is_own_slot)
		rank += 20;
	else if (!idx || !is_interposable(&sym))
		rank += 10;
	if (rank <= s->best)
		return;
	s->best = rank;
	got.block_off = (int64_t)s->sym.st_value;
	*s->ret = got;
}

static void try_slots(struct search *s, int64_t table_tag, int64_t bytes_tag)
{
	uint64_t vaddr, bytes, i;
	const uint8_t *p;

	if (elf_file_dynamic(s->ef, table_tag, &vaddr) ||
	    elf_file_dynamic(s->ef, bytes_tag, &bytes))
		return;
	p = elf_file_read(s->ef, vaddr, bytes);
	for (i = 0; p && i < bytes / sizeof(GElf_Rela) && elf_file_step(s->ef, 1); i++) {
		GElf_Rela r;

		memcpy(&r, p + i * sizeof(r), sizeof(r));
		try_slot(s, &r);
	}
}

int tls_symbol_find(struct elf_file *ef, const char *name, struct tls_symbol *ret)
{
	struct search s = { .ef = ef, .name = name, .ret = ret };
	GElf_Phdr tls;
	int err;

	/* Most files have no thread-local variable at all: do not look through their symbols. */
	if (!elf_file_is_64(ef) || !elf_file_phdr(ef, PT_TLS, &tls) ||
	    (elf_file_ehdr(ef)->e_machine != EM_X86_64 &&
	     elf_file_ehdr(ef)->e_machine != EM_AARCH64) ||
	    !find_symbol(ef, name, 1U << STT_TLS, &s.sym))
		return -ENOENT;
	if (s.sym.st_value >= tls.p_memsz || tls.p_memsz > INT32_MAX)
		return -ENOENT;
	if (is_executable(ef)) {
		int64_t distance;

		err = block_distance(ef, &distance);
		if (err)
			return -ENOENT;
		*ret = (struct tls_symbol){ .place = TLS_PLACE_OFFSET,
					    .off = distance + (int64_t)s.sym.st_value,
					    .block_off = (int64_t)s.sym.st_value };
		return 0;
	}
	if (!elf_file_symtab(ef, SHT_DYNSYM, &s.dyn))
		s.dyn.cnt = 0;
	try_slots(&s, DT_RELA, DT_RELASZ);
	try_slots(&s, DT_JMPREL, DT_PLTRELSZ);
	return s.best ? 0 : -ENODATA;
}

int elf_data_symbol_u32(struct elf_file *ef, const char *name, uint32_t *ret)
{
	const uint8_t *p;
	GElf_Sym sym;

	if (!elf_file_is_64(ef) ||
	    !find_symbol(ef, name, 1U << STT_OBJECT | 1U << STT_NOTYPE, &sym))
		return -ENOENT;
	p = elf_file_read(ef, sym.st_value, sizeof(*ret));
	if (!p)
		return -ENOENT;
	memcpy(ret, p, sizeof(*ret));
	return 0;
}
