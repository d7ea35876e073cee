/* SPDX-License-Identifier: MIT */
/*
 * plt_names.c - the imported function that a PLT stub jumps to.
 *
 * Linkers lay out .plt, .plt.sec and .plt.got differently (lazy or not, with endbr64 or not, 8 or 16 bytes a stub).
 * Instead of knowing the layouts, this looks in a stub for the one thing that all have: an indirect jump through a slot
 * of the global offset table, `jmp *slot(%rip)`. The dynamic relocation of that slot names the function. The first stub
 * of a lazy PLT jumps through a slot that has no relocation, so it gets no name, which is right.
 */
#include "elf/plt_names.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf_file.h"

#define STUB_BYTES_DEFAULT 16
#define STUB_BYTES_CAP 64
/* Longest name of an import. Each relocation may have the same name. */
#define NAME_BYTES_CAP 4096
/* For a relocation whose symbol and name are looked up, or a stub that is searched. */
#define STEPS_EACH 8

static int slot_cmp(const void *a, const void *b)
{
	const struct plt_slot *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int stub_cmp(const void *a, const void *b)
{
	const struct plt_stub *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* Name of symbol idx, or NULL. */
static const char *symbol_name(const struct elf_section *syms, const struct elf_section *strs,
			       uint64_t idx)
{
	const uint8_t *end;
	Elf64_Sym sym;
	size_t room;

	if (idx >= syms->bytes / sizeof(sym))
		return NULL;
	memcpy(&sym, syms->data + idx * sizeof(sym), sizeof(sym));
	if (sym.st_name >= strs->bytes || !strs->data[sym.st_name])
		return NULL;
	room = strs->bytes - sym.st_name < NAME_BYTES_CAP ? strs->bytes - sym.st_name :
							    NAME_BYTES_CAP;
	end = memchr(strs->data + sym.st_name, 0, room);
	return end ? (const char *)strs->data + sym.st_name : NULL;
}

/* Read the named slots of relocation section idx. */
static int read_slots(struct elf_file *ef, size_t idx, struct plt_stubs *ret)
{
	const struct elf_section_head *heads;
	struct elf_section relas, syms, strs;
	size_t head_cnt, i;

	heads = elf_file_section_heads(ef, &head_cnt);
	if (heads[idx].link >= head_cnt || heads[heads[idx].link].type != SHT_DYNSYM ||
	    elf_file_section_at(ef, idx, &relas) ||
	    elf_file_section_at(ef, heads[idx].link, &syms) ||
	    elf_file_section_at(ef, heads[heads[idx].link].link, &strs))
		return 0;
	for (i = 0; i < relas.bytes / sizeof(Elf64_Rela) && elf_file_step(ef, 1); i++) {
		const char *name;
		Elf64_Rela r;

		memcpy(&r, relas.data + i * sizeof(r), sizeof(r));
		if (ELF64_R_TYPE(r.r_info) != R_X86_64_JUMP_SLOT &&
		    ELF64_R_TYPE(r.r_info) != R_X86_64_GLOB_DAT)
			continue;
		if (!elf_file_step(ef, STEPS_EACH) || !elf_file_fill(ef, sizeof(struct plt_slot)))
			break;
		name = symbol_name(&syms, &strs, ELF64_R_SYM(r.r_info));
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

static int read_stubs(struct elf_file *ef, size_t idx, struct plt_stubs *ret)
{
	const struct elf_section_head *head;
	struct elf_section text;
	size_t cnt, pos, step;

	head = &elf_file_section_heads(ef, &cnt)[idx];
	if (elf_file_section_at(ef, idx, &text))
		return 0;
	step = head->entry_bytes >= 8 && head->entry_bytes <= STUB_BYTES_CAP ? head->entry_bytes :
									       STUB_BYTES_DEFAULT;
	for (pos = 0; pos + 6 <= text.bytes; pos += step) {
		size_t bytes = text.bytes - pos < step ? text.bytes - pos : step;
		struct plt_slot key = { stub_slot(text.data + pos, bytes, text.vaddr + pos), NULL };
		const struct plt_slot *s;

		if (!elf_file_step(ef, STEPS_EACH) || !elf_file_fill(ef, sizeof(struct plt_stub)))
			break;
		if (!key.vaddr)
			continue;
		s = bsearch(&key, ret->slots.data, ret->slots.cnt, sizeof(key), slot_cmp);
		if (s && vec_push(&ret->stubs, (struct plt_stub){ .vaddr = text.vaddr + pos,
								  .bytes = (uint32_t)bytes,
								  .name = s->name }))
			return -ENOMEM;
	}
	return 0;
}

int plt_names_read(struct elf_file *ef, struct plt_stubs *ret)
{
	const struct elf_section_head *heads;
	size_t cnt, i;
	int err = 0;

	if (elf_file_machine(ef) != EM_X86_64 || !elf_file_is_64(ef))
		return 0;
	heads = elf_file_section_heads(ef, &cnt);
	for (i = 0; i < cnt && !err; i++)
		if (heads[i].type == SHT_RELA && (heads[i].flags & SHF_ALLOC))
			err = read_slots(ef, i, ret);
	if (err || !ret->slots.cnt)
		return err;
	qsort(ret->slots.data, ret->slots.cnt, sizeof(struct plt_slot), slot_cmp);
	for (i = 0; i < cnt && !err; i++)
		if (heads[i].type == SHT_PROGBITS && (heads[i].flags & SHF_EXECINSTR) &&
		    !strncmp(heads[i].name, ".plt", 4))
			err = read_stubs(ef, i, ret);
	if (ret->stubs.cnt)
		qsort(ret->stubs.data, ret->stubs.cnt, sizeof(struct plt_stub), stub_cmp);
	return err;
}

void plt_names_release(struct plt_stubs *p)
{
	vec_release(&p->stubs);
	vec_release(&p->slots);
}

const char *plt_names_at(const struct plt_stubs *p, uint64_t vaddr)
{
	const struct plt_stub *stub = NULL;
	const struct plt_slot *slot = NULL;

	if (p->stubs.cnt)
		stub = bsearch(&(struct plt_stub){ .vaddr = vaddr }, p->stubs.data, p->stubs.cnt,
			       sizeof(*stub), stub_cmp);
	if (stub)
		return stub->name;
	if (p->slots.cnt)
		slot = bsearch(&(struct plt_slot){ .vaddr = vaddr }, p->slots.data, p->slots.cnt,
			       sizeof(*slot), slot_cmp);
	return slot ? slot->name : NULL;
}
