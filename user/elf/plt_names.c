/* SPDX-License-Identifier: MIT */
/*
 * plt_names.c - the imported function that a PLT stub jumps to.
 *
 * Linkers lay out .plt, .plt.sec and .plt.got differently (lazy or not, with endbr64 or not, 8 or 16 bytes a stub).
 * Instead of knowing the layouts, this looks in a stub for the one thing that all have: an indirect jump through a slot
 * of the global offset table, `jmp *slot(%rip)`. The dynamic relocation of that slot names the function. The first stub
 * of a lazy PLT jumps through a slot that has no relocation, so it gets no name, which is right.
 */
#include "elf/elf_symbols.h"

#include "elf/elf_file.h"

#define STUB_BYTES_DEFAULT 16
#define STUB_BYTES_CAP 64
/* For a relocation whose symbol and name are looked up, or a stub that is searched. */
#define STEPS_EACH 8

/* Read the named slots of a relocation section. */
static int read_slots(const struct elf_file *ef, const struct elf_symtab *symbols, Elf_Data *data,
		      struct plt_stubs *ret)
{
	const char *name;
	GElf_Rela r;
	GElf_Sym sym;

	for (int i = 0; gelf_getrela(data, i, &r) && elf_file_step(ef, 1); i++) {
		if (GELF_R_TYPE(r.r_info) != R_X86_64_JUMP_SLOT &&
		    GELF_R_TYPE(r.r_info) != R_X86_64_GLOB_DAT)
			continue;
		if (!elf_file_step(ef, STEPS_EACH) || !elf_file_fill(ef, sizeof(struct plt_slot)))
			break;
		name = elf_symtab_get(symbols, GELF_R_SYM(r.r_info), &sym);
		if (name && vec_push(&ret->slots, (struct plt_slot){ r.r_offset, name }))
			return -ENOMEM;
	}
	return 0;
}

/* The slot that the stub at vaddr jumps through, 0: none. */
static uint64_t stub_slot(const uint8_t *p, size_t bytes, uint64_t vaddr)
{
	size_t i;

	for (i = 0; i + 6 <= bytes; i++) {
		int32_t disp;

		if (p[i] != 0xff || p[i + 1] != 0x25)
			continue;
		memcpy(&disp, p + i + 2, sizeof(disp));
		return vaddr + i + 6 + (uint64_t)(int64_t)disp;
	}
	return 0;
}

static int read_stubs(const struct elf_file *ef, const GElf_Shdr *sh, const Elf_Data *data,
		      struct plt_stubs *ret)
{
	size_t step = sh->sh_entsize >= 8 && sh->sh_entsize <= STUB_BYTES_CAP ? sh->sh_entsize :
										STUB_BYTES_DEFAULT;

	for (size_t pos = 0; data && pos + 6 <= data->d_size; pos += step) {
		size_t bytes = data->d_size - pos < step ? data->d_size - pos : step;
		uint64_t vaddr = sh->sh_addr + pos;
		uint64_t slot = stub_slot((const uint8_t *)data->d_buf + pos, bytes, vaddr);
		const struct plt_slot *s;

		if (!elf_file_step(ef, STEPS_EACH) || !elf_file_fill(ef, sizeof(struct plt_stub)))
			break;
		if (!slot)
			continue;
		s = vec_get(&ret->slots, vaddr, slot);
		if (s &&
		    vec_push(&ret->stubs, (struct plt_stub){ vaddr, (uint32_t)bytes, s->name }))
			return -ENOMEM;
	}
	return 0;
}

int plt_names_read(struct elf_file *ef, struct plt_stubs *ret)
{
	struct elf_symtab symbols;
	Elf *elf = elf_file_elf(ef);
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	int err = 0;

	if (elf_file_ehdr(ef)->e_machine != EM_X86_64 || !elf_file_symtab(ef, SHT_DYNSYM, &symbols))
		return 0;
	while (!err && (scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &sh))
		if (sh.sh_type == SHT_RELA && sh.sh_flags & SHF_ALLOC)
			err = read_slots(ef, &symbols, elf_file_data(ef, scn), ret);
	if (err || !ret->slots.cnt)
		return err;
	vec_sort_by(&ret->slots, vaddr);
	while (!err && (scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &sh))
		if (sh.sh_type == SHT_PROGBITS && sh.sh_flags & SHF_EXECINSTR &&
		    !strncmp(elf_file_section_name(ef, scn), ".plt", 4))
			err = read_stubs(ef, &sh, elf_file_data(ef, scn), ret);
	vec_sort_by(&ret->stubs, vaddr);
	return err;
}

void plt_names_release(struct plt_stubs *p)
{
	vec_release(&p->stubs);
	vec_release(&p->slots);
}

const char *plt_names_at(const struct plt_stubs *p, uint64_t vaddr)
{
	const struct plt_stub *stub = vec_get(&p->stubs, vaddr, vaddr);
	const struct plt_slot *slot;

	if (stub)
		return stub->name;
	slot = vec_get(&p->slots, vaddr, vaddr);
	return slot ? slot->name : NULL;
}
