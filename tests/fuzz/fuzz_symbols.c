/* SPDX-License-Identifier: MIT */
/* fuzz_symbols.c - symbol tables, and the search for allocators, in files of any content. */
#include "fuzz.h"

#include "../lib/find_symbol.h"
#include "cost.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "alloc/allocators.h"

static int touch(void *ctx, const struct elf_symbol *sym)
{
	*(size_t *)ctx += strlen(sym->name) + alloc_is_allocator_frame(sym->name);
	return *(size_t *)ctx > 1 << 20;
}

static void check_table(const struct elf_symbols *s)
{
	const struct elf_symbol *all, *found;
	size_t cnt, i;

	all = elf_symbols_all(s, &cnt);
	for (i = 0; i < cnt; i++) {
		if (i && all[i - 1].vaddr >= all[i].vaddr)
			abort();
		found = elf_symbols_find(s, all[i].vaddr);
		if (found && (found->vaddr > all[i].vaddr || !*found->name))
			abort();
	}
}

static void check_allocator(const struct alloc_file *af, const struct elf_file *ef)
{
	const struct alloc_range *r;
	const struct alloc_site *site;

	vec_each(&af->sites, site)
		if (!elf_file_read(ef, site->placement.vaddr, 1) ||
		    site->placement.vaddr - site->fn_vaddr >= 64)
			abort();
	vec_each(&af->inner, r)
		if (r->start_vaddr >= r->end_vaddr)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct alloc_options opts = { 0 };
	struct elf_symbols *s;
	struct alloc_file *af;
	struct elf_symbol sym;
	struct elf_file *ef;
	size_t sum = 0;
	uint64_t start_ns = cost_now_ns();

	if (elf_file_open_mem(data, bytes, &ef))
		return 0;
	if (!elf_symbols_load(ef, NULL, &s)) {
		elf_symbols_each(s, touch, &sum);
		find_symbol(s, "malloc", &sym);
		check_table(s);
		if (!alloc_file_scan(ef, s, &opts, &af)) {
			check_allocator(af, ef);
			alloc_file_free(af);
		}
		elf_symbols_free(s);
	}
	cost_check(ef, start_ns, bytes);
	elf_file_close(ef);
	return 0;
}
