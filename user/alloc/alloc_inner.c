/* SPDX-License-Identifier: MIT */
/*
 * alloc_inner.c - finds the code of a file whose calls of the allocator are a part of another call.
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

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "heaptap/abi.h"

/* Most exported functions that are searched for calls to entry points. */
#define CALLERS_CAP 1024

struct ranges {
	struct alloc_ranges v;
};

static int range_cmp(const void *a, const void *b)
{
	const struct alloc_range *x = a, *y = b;

	return x->start_vaddr < y->start_vaddr ? -1 : x->start_vaddr > y->start_vaddr;
}

static int add_range(struct ranges *r, uint64_t start, uint64_t bytes)
{
	if (!bytes)
		return 0;
	return vec_push(&r->v, (struct alloc_range){ start, start + bytes }) ? -ENOMEM : 0;
}

/* Sort the ranges, and join those that touch. */
static void join(struct ranges *r)
{
	size_t i, out = 0;

	if (!r->v.cnt)
		return;
	qsort(r->v.data, r->v.cnt, sizeof(struct alloc_range), range_cmp);
	for (i = 1; i < r->v.cnt; i++) {
		struct alloc_range *last = &r->v.data[out];
		const struct alloc_range *x = &r->v.data[i];

		if (x->start_vaddr > last->end_vaddr)
			r->v.data[++out] = *x;
		else if (x->end_vaddr > last->end_vaddr)
			last->end_vaddr = x->end_vaddr;
	}
	r->v.cnt = out + 1;
}

/* Add the functions that entry points jump to and that call entry points. Of a family that is not known they may be
 * called by others, too: there the entry point is followed to its return (judge() in allocators.c). */
static int add_tails(const struct alloc_founds *all, struct ranges *ret)
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
	struct ranges ranges;
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
		    const struct alloc_founds *all, struct ranges *ret)
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
		for (k = 0; k < c->ranges.v.cnt && !err; k++) {
			const struct alloc_range *hole = &c->ranges.v.data[k];

			if (hole->start_vaddr < start || hole->end_vaddr > end)
				continue;
			err = add_range(ret, start, hole->start_vaddr - start);
			start = hole->end_vaddr;
		}
		if (!err)
			err = add_range(ret, start, end - start);
	}
	vec_release(&c->ranges.v);
	free(c);
	return err;
}

/* Keep the ALLOC_INNER_CAP longest ranges. */
static void limit(struct ranges *r)
{
	while (r->v.cnt > ALLOC_INNER_CAP) {
		size_t least = 0, i;

		for (i = 1; i < r->v.cnt; i++)
			if (r->v.data[i].end_vaddr - r->v.data[i].start_vaddr <
			    r->v.data[least].end_vaddr - r->v.data[least].start_vaddr)
				least = i;
		memmove(&r->v.data[least], &r->v.data[least + 1],
			(r->v.cnt - least - 1) * sizeof(struct alloc_range));
		r->v.cnt--;
	}
}

int alloc_inner_find(const struct alloc_calls *ac, const struct elf_file *ef, bool is_allocator,
		     const struct alloc_founds *all, struct alloc_ranges *ret)
{
	struct ranges r = { 0 };
	int err;

	if (is_allocator)
		err = add_code(ac, ef, all, &r);
	else
		err = add_tails(all, &r);
	if (err) {
		vec_release(&r.v);
		return err;
	}
	join(&r);
	limit(&r);
	*ret = r.v;
	return 0;
}
