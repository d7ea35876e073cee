/* SPDX-License-Identifier: MIT */
/*
 * alloc_calls.c - the entry points of an allocator that end in, or call, other entry points of the same file.
 *
 * A linear walk over each function's code (placement_shape) gives its direct branches. A branch leads to another entry
 * point when its target is that function, a PLT stub of its name, or a GOT slot of its name. Through the last two the
 * dynamic linker may also lead elsewhere (an interposed malloc), but then that one is the allocator, and is probed in
 * its own file.
 *
 * Jumps out of a function are followed into local functions, because compilers split functions and share tails: glibc's
 * memalign jumps to _mid_memalign, which jumps to malloc for small alignments. In stripped files .eh_frame_hdr tells
 * where the local function ends.
 */
#include "alloc/allocators_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf_file.h"
#include "heaptap/abi.h"

/* Most instructions of a function that does nothing but call another. */
#define THUNK_INSNS 40

int alloc_calls_init(struct alloc_calls *ac, struct elf_file *ef, const struct elf_symbols *syms)
{
	memset(ac, 0, sizeof(*ac));
	ac->ef = ef;
	ac->syms = syms;
	alloc_lookup_init(&ac->lookup);
	fde_index_init(ef, &ac->fdes);
	return plt_names_read(ef, &ac->plt);
}

static int name_cmp(const void *a, const void *b)
{
	const struct alloc_name *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

void alloc_calls_sort(struct alloc_calls *ac)
{
	if (ac->names.cnt)
		qsort(ac->names.data, ac->names.cnt, sizeof(struct alloc_name), name_cmp);
}

void alloc_calls_release(struct alloc_calls *ac)
{
	plt_names_release(&ac->plt);
	vec_release(&ac->names);
}

uint64_t alloc_calls_function_bytes(const struct alloc_calls *ac, uint64_t vaddr)
{
	const struct elf_symbol *sym;
	uint64_t start, end;

	if (fde_index_find(&ac->fdes, vaddr, &start, &end) && start == vaddr)
		return end - start;
	sym = elf_symbols_find(ac->syms, vaddr);
	return sym && sym->vaddr == vaddr ? sym->bytes : 0;
}

uint64_t alloc_calls_target(const struct alloc_calls *ac, const struct branch_out *br)
{
	const struct alloc_name key = { .vaddr = br->target_vaddr };
	const struct alloc_name *n;
	const char *import;

	if (!ac->names.cnt)
		return 0;
	if (!br->is_slot &&
	    bsearch(&key, ac->names.data, ac->names.cnt, sizeof(struct alloc_name), name_cmp))
		return br->target_vaddr;
	import = plt_names_at(&ac->plt, br->target_vaddr);
	elf_file_step(ac->ef, import ? ac->names.cnt : 1);
	vec_each(&ac->names, n)
		if (import && !strcmp(import, n->name))
			return n->vaddr;
	return 0;
}

static void add_function(const struct alloc_calls *ac, struct alloc_tail *t, uint64_t vaddr)
{
	uint64_t bytes;
	int i;

	for (i = 0; i < t->fn_cnt; i++)
		if (vaddr - t->fn[i].vaddr < t->fn[i].bytes)
			return;
	bytes = alloc_calls_function_bytes(ac, vaddr);
	/* A target where no function begins is in the middle of one: a cold part's way back. */
	if (!bytes || t->fn_cnt == ALLOC_TAIL_FUNCTIONS_CAP)
		return;
	t->fn[t->fn_cnt].vaddr = vaddr;
	t->fn[t->fn_cnt].bytes = bytes;
	t->fn[t->fn_cnt++].calls_entry = false;
}

static void add_entry(struct alloc_tail *t, uint64_t vaddr)
{
	int i;

	for (i = 0; i < t->entry_cnt; i++)
		if (t->entry[i] == vaddr)
			return;
	if (t->entry_cnt < ALLOC_TAIL_ENTRIES_CAP)
		t->entry[t->entry_cnt++] = vaddr;
}

/*
 * Does the function only pass its call on? It jumps to one entry point, calls none, and if it returns by
 * itself, it returns NULL (overflow checks before the jump). A function that frees must not call local code
 * either: that code may do the free.
 */
static uint64_t thunk_target(const struct alloc_calls *ac, const struct code_shape *sh,
			     bool is_free)
{
	uint64_t to = 0;
	size_t i;

	if (sh->insn_cnt > THUNK_INSNS || sh->has_indirect || sh->is_cut)
		return 0;
	if (!is_free && sh->ret_cnt != sh->ret_zero_cnt)
		return 0;
	for (i = 0; i < sh->out_cnt; i++) {
		uint64_t entry = alloc_calls_target(ac, &sh->out[i]);

		if (entry && (!sh->out[i].is_jump || (to && to != entry)))
			return 0;
		if (entry)
			to = entry;
		else if (sh->out[i].is_jump)
			return 0;
		else if (is_free && !plt_names_at(&ac->plt, sh->out[i].target_vaddr))
			return 0;
	}
	return to;
}

/* A branch to no entry point of this file: may it lead to another file's? */
static bool may_allocate(const struct alloc_calls *ac, const struct branch_out *br)
{
	const char *import = plt_names_at(&ac->plt, br->target_vaddr);
	const struct alloc_row *row;
	size_t prefix;

	if (!import)
		return br->is_slot; /* a pointer in a variable */
	row = alloc_lookup_find(&ac->lookup, import, &prefix);
	return row && row->op != HT_OP_FREE;
}

int alloc_calls_tail(const struct alloc_calls *ac, uint64_t vaddr, uint64_t bytes, bool is_free,
		     struct alloc_tail *ret)
{
	struct code_shape *sh;
	int err = 0, f;
	size_t i;

	memset(ret, 0, sizeof(*ret));
	sh = malloc(sizeof(*sh));
	if (!sh)
		return -ENOMEM;
	ret->fn[0].vaddr = vaddr;
	ret->fn[0].bytes = bytes;
	ret->fn_cnt = 1;
	for (f = 0; f < ret->fn_cnt; f++) {
		err = placement_shape(ac->ef, ret->fn[f].vaddr, ret->fn[f].bytes, sh);
		if (err)
			break;
		if (!f)
			ret->thunk_to = thunk_target(ac, sh, is_free);
		ret->may_leave |= f ? sh->has_indirect : sh->has_indirect_jump;
		for (i = 0; i < sh->out_cnt; i++) {
			uint64_t entry = alloc_calls_target(ac, &sh->out[i]);

			if (entry && sh->out[i].is_jump)
				add_entry(ret, entry);
			else if (entry)
				ret->fn[f].calls_entry = true;
			else if ((f || sh->out[i].is_jump) && may_allocate(ac, &sh->out[i]))
				ret->may_leave = true;
			else if (sh->out[i].is_jump && !sh->out[i].is_slot &&
				 !plt_names_at(&ac->plt, sh->out[i].target_vaddr))
				add_function(ac, ret, sh->out[i].target_vaddr);
		}
	}
	free(sh);
	/* Code that cannot be decoded tells nothing; the probe does not depend on it. */
	return err == -ENOMEM ? err : 0;
}
