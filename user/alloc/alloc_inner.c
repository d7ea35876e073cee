/* SPDX-License-Identifier: MIT */
/*
 * alloc_inner.c - which entry points of a file call others, and the code whose calls of the allocator are a part of
 * another call.
 *
 * What is nested is known by the call that is open: probed functions that allocate are marked in the unwind table, and
 * the walk of a sample's stack ends at a mark. Ranges are for what no mark shows: a function that an entry point jumps
 * to, and that calls an entry point, runs while the entry point is off the stack. So they are such functions, and in a
 * library that is nothing but an allocator, which its name tells, all code.
 *
 * A range that is too large loses allocations. So a call from a range that no open call was found for is counted, or,
 * where every call is recorded, is none (bpf/call.bpf.h). If there are too many ranges, those with the least code are
 * dropped first.
 */
#include "alloc/allocators_priv.h"

#include "elf/elf_file.h"
#include "heaptap/abi.h"

/*
 * The entry points of an allocator that end in, or call, other entry points of the same file.
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
/* Most instructions of a function that does nothing but call another. */
#define THUNK_INSNS 40

uint64_t alloc_calls_function_bytes(const struct alloc_calls *ac, uint64_t vaddr)
{
	const struct elf_symbol *sym;
	uint64_t start, end;

	if (fde_index_find(&ac->fdes, vaddr, &start, &end) && start == vaddr)
		return end - start;
	sym = elf_symbols_find(ac->syms, vaddr);
	return sym && sym->vaddr == vaddr ? sym->bytes : 0;
}

/* The vaddr of the entry point that a branch leads to (directly, by PLT or GOT slot), 0: none. */
static uint64_t alloc_calls_target(const struct alloc_calls *ac, const struct branch_out *br)
{
	const struct alloc_name *n;
	const char *import;

	if (!ac->names.cnt)
		return 0;
	if (!br->is_slot && vec_get(&ac->names, vaddr, br->target_vaddr))
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

/*
 * The ranges.
 */

/* Most exported functions that are searched for calls to entry points. */
#define CALLERS_CAP 1024

static int add_range(struct alloc_ranges *r, uint64_t start, uint64_t bytes)
{
	if (!bytes)
		return 0;
	return vec_push(r, (struct alloc_range){ start, start + bytes }) ? -ENOMEM : 0;
}

/* Sort the ranges, and join those that touch. */
static void join(struct alloc_ranges *r)
{
	size_t i, out = 0;

	if (!r->cnt)
		return;
	vec_sort_by(r, start_vaddr);
	for (i = 1; i < r->cnt; i++) {
		struct alloc_range *last = &r->data[out];
		const struct alloc_range *x = &r->data[i];

		if (x->start_vaddr > last->end_vaddr)
			r->data[++out] = *x;
		else if (x->end_vaddr > last->end_vaddr)
			last->end_vaddr = x->end_vaddr;
	}
	r->cnt = out + 1;
}

/* Add the functions that entry points jump to and that call entry points. Of a family that is not known they may be
 * called by others, too: there the entry point is followed to its return (judge() in allocators.c). */
static int add_tails(const struct alloc_founds *all, struct alloc_ranges *ret)
{
	int err = 0;

	for (size_t i = 0; i < all->cnt; i++) {
		const struct alloc_found *f = &all->data[i];

		if (f->is_skipped || f->family == alloc_family_unknown())
			continue;
		for (int t = 1; t < f->tail.fn_cnt && !err; t++)
			if (f->tail.fn[t].calls_entry)
				err = add_range(ret, f->tail.fn[t].vaddr, f->tail.fn[t].bytes);
	}
	return err;
}

struct callers {
	const struct alloc_calls *ac;
	const struct alloc_founds *all;
	struct code_shape shape;
	struct alloc_ranges ranges;
	unsigned int seen_cnt;
};

/* Note an exported C function that is no entry point and calls one. */
static int note_caller(void *ctx, const struct elf_symbol *sym)
{
	struct callers *c = ctx;
	uint64_t bytes = sym->bytes;
	size_t i;

	if (sym->is_local || sym->name[0] == '_' || c->seen_cnt >= CALLERS_CAP)
		return 0;
	elf_file_step(c->ac->ef, c->all->cnt / 8);
	for (i = 0; i < c->all->cnt; i++)
		if (c->all->data[i].vaddr == sym->vaddr)
			return 0;
	c->seen_cnt++;
	if (!bytes)
		bytes = alloc_calls_function_bytes(c->ac, sym->vaddr);
	if (!bytes || placement_shape(c->ac->ef, sym->vaddr, bytes, &c->shape))
		return 0;
	for (i = 0; i < c->shape.out_cnt; i++)
		if (!c->shape.out[i].is_jump && alloc_calls_target(c->ac, &c->shape.out[i]))
			return add_range(&c->ranges, sym->vaddr, bytes);
	return 0;
}

/* Add all code of the file except that of callers. */
static int add_code(const struct alloc_calls *ac, const struct elf_file *ef,
		    const struct alloc_founds *all, struct alloc_ranges *ret)
{
	struct callers *c = calloc(1, sizeof(*c));
	const struct elf_segment *segs;
	size_t seg_cnt, i, k;
	int err;

	if (!c)
		return -ENOMEM;
	c->ac = ac;
	c->all = all;
	err = elf_symbols_each(ac->syms, note_caller, c);
	join(&c->ranges);
	segs = elf_file_segments(ef, &seg_cnt);
	for (i = 0; i < seg_cnt && !err; i++) {
		uint64_t start = segs[i].vaddr, end = start + segs[i].mem_bytes;

		if (!segs[i].is_exec)
			continue;
		for (k = 0; k < c->ranges.cnt && !err; k++) {
			const struct alloc_range *hole = &c->ranges.data[k];

			if (hole->start_vaddr < start || hole->end_vaddr > end)
				continue;
			err = add_range(ret, start, hole->start_vaddr - start);
			start = hole->end_vaddr;
		}
		if (!err)
			err = add_range(ret, start, end - start);
	}
	vec_release(&c->ranges);
	free(c);
	return err;
}

/* Keep the ALLOC_INNER_CAP longest ranges. */
static void limit(struct alloc_ranges *r)
{
	while (r->cnt > ALLOC_INNER_CAP) {
		size_t least = 0, i;

		for (i = 1; i < r->cnt; i++)
			if (r->data[i].end_vaddr - r->data[i].start_vaddr <
			    r->data[least].end_vaddr - r->data[least].start_vaddr)
				least = i;
		memmove(&r->data[least], &r->data[least + 1],
			(r->cnt - least - 1) * sizeof(struct alloc_range));
		r->cnt--;
	}
}

int alloc_inner_find(const struct alloc_calls *ac, const struct elf_file *ef, bool is_allocator,
		     const struct alloc_founds *all, struct alloc_ranges *ret)
{
	struct alloc_ranges r = { 0 };
	int err;

	if (is_allocator)
		err = add_code(ac, ef, all, &r);
	else
		err = add_tails(all, &r);
	if (err) {
		vec_release(&r);
		return err;
	}
	join(&r);
	limit(&r);
	*ret = r;
	return 0;
}
