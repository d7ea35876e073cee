/* SPDX-License-Identifier: MIT */
/* fuzz_placement.c - where to probe functions that consist of any bytes. */
#include "fuzz.h"

#include <elf.h>

#include "elf/elf_file.h"
#include "alloc/placement.h"

#define TEXT_VADDR 0x401000
#define CODE_CAP 4096

struct image {
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	uint8_t code[CODE_CAP];
};

static void make_image(const uint8_t *code, size_t bytes, struct image *ret)
{
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->eh.e_ident, ELFMAG, SELFMAG);
	ret->eh.e_ident[EI_CLASS] = ELFCLASS64;
	ret->eh.e_ident[EI_DATA] = ELFDATA2LSB;
	ret->eh.e_machine = EM_X86_64;
	ret->eh.e_phoff = offsetof(struct image, ph);
	ret->eh.e_phnum = 1;
	ret->eh.e_phentsize = sizeof(ret->ph);
	ret->ph = (Elf64_Phdr){ .p_type = PT_LOAD,
				.p_flags = PF_R | PF_X,
				.p_offset = offsetof(struct image, code),
				.p_vaddr = TEXT_VADDR,
				.p_filesz = bytes,
				.p_memsz = bytes };
	memcpy(ret->code, code, bytes);
}

static void check(const struct placement *pl, const struct placement_request *req, size_t bytes)
{
	int i;

	if (pl->vaddr < TEXT_VADDR || pl->vaddr - TEXT_VADDR >= bytes ||
	    pl->vaddr - TEXT_VADDR >= 64)
		abort();
	if (!pl->is_emulated && (pl->vaddr != TEXT_VADDR || !pl->why[0] || pl->skips_null))
		abort();
	if (pl->is_emulated && (pl->why[0] || !pl->insn[0]))
		abort();
	if (pl->skips_null && !req->null_check_ok)
		abort();
	if (req->entry_only && pl->vaddr != TEXT_VADDR)
		abort();
	for (i = 0; i < 6; i++)
		if (pl->arg_at[i] >= 6 || (!(req->arg_mask >> i & 1) && pl->arg_at[i] != i))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct placement_request req = { .fn_vaddr = TEXT_VADDR };
	struct code_shape *sh;
	struct placement pl;
	struct elf_file *ef;
	struct image *im;

	if (bytes < 4)
		return 0;
	req.arg_mask = data[0] & 0x3f;
	req.needs_entry_sp = data[1] & 1;
	req.null_check_ok = data[1] & 2;
	req.multibyte_nop_ok = data[1] & 4;
	req.entry_only = data[1] & 8;
	req.fn_bytes = data[2];
	data += 3;
	bytes -= 3;
	if (bytes > CODE_CAP)
		bytes = CODE_CAP;
	im = malloc(sizeof(*im));
	sh = malloc(sizeof(*sh));
	if (!im || !sh)
		abort();
	make_image(data, bytes, im);
	if (elf_file_open_mem(im, offsetof(struct image, code) + bytes, &ef))
		abort();
	if (placement_find(ef, &req, &pl))
		abort();
	check(&pl, &req, bytes);
	if (placement_shape(ef, TEXT_VADDR, req.fn_bytes, sh) || sh->out_cnt > CODE_BRANCHES_CAP)
		abort();
	elf_file_close(ef);
	free(sh);
	free(im);
	return 0;
}
