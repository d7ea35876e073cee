/* SPDX-License-Identifier: MIT */
/*
 * alloc_inner.c - finds the allocator's own code in a file.
 *
 * If a range is too small, an allocation counts twice (the second insertion finds the address there and is counted as a
 * missed free). If it is too large, allocations are lost silently, which is worse. So ranges are grown only where
 * nothing else can be, and if there are too many, the ones with the least code are dropped first.
 */
#include "alloc/allocators_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "heaptap/abi.h"

/* In a shared libc the malloc directory is linked in one piece (musl: 9 KiB between memalign and
 * aligned_alloc, all of it malloc's). */
#define LIBC_GAP_BYTES 16384
/* For a library of no known family that defines malloc: up to this much code it is an allocator or a wrapper of one;
 * with more code it is something else that wraps malloc, and calls it too. */
#define UNKNOWN_CODE_BYTES (256 * 1024)
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

/* Sort the ranges, and join those that are at most gap apart. */
static void join(struct ranges *r, uint64_t gap)
{
	size_t i, out = 0;

	if (!r->v.cnt)
		return;
	qsort(r->v.data, r->v.cnt, sizeof(struct alloc_range), range_cmp);
	for (i = 1; i < r->v.cnt; i++) {
		struct alloc_range *last = &r->v.data[out];
		const struct alloc_range *x = &r->v.data[i];

		if (x->start_vaddr > last->end_vaddr + gap)
			r->v.data[++out] = *x;
		else if (x->end_vaddr > last->end_vaddr)
			last->end_vaddr = x->end_vaddr;
	}
	r->v.cnt = out + 1;
}

/* Does a family's run of entry points include this one? reallocarray is in an object file of its own, and operator
 * new of a program comes from elsewhere. */
static bool is_in_cluster(const struct alloc_found *f)
{
	return !alloc_row_is_cxx(f->row) && f->row->op != HT_OP_RESIZE &&
	       strcmp(f->row->name, "reallocarray");
}

/* Add the runs of entry points of an object file, and the functions they jump to. */
static int add_entries(const struct alloc_founds *all, bool is_lib, struct ranges *ret)
{
	const struct alloc_family *families[8];
	size_t family_cnt = 0, i, j, k;
	int err = 0;

	for (i = 0; i < all->cnt; i++) {
		for (j = 0; j < family_cnt && families[j] != all->data[i].family; j++)
			;
		if (j == family_cnt && family_cnt < 8)
			families[family_cnt++] = all->data[i].family;
	}
	for (j = 0; j < family_cnt && !err; j++) {
		struct ranges run = { 0 };

		for (i = 0; i < all->cnt && !err; i++)
			if (all->data[i].family == families[j] && !all->data[i].is_skipped &&
			    is_in_cluster(&all->data[i]))
				err = add_range(&run, all->data[i].vaddr, all->data[i].bytes);
		join(&run,
		     is_lib && families[j]->is_libc ? LIBC_GAP_BYTES : families[j]->gap_bytes);
		for (k = 0; k < run.v.cnt && !err; k++)
			err = vec_push(&ret->v, run.v.data[k]) ? -ENOMEM : 0;
		vec_release(&run.v);
	}
	for (i = 0; i < all->cnt && !err; i++) {
		const struct alloc_found *f = &all->data[i];
		int t;

		if (!f->is_skipped)
			err = add_range(ret, f->vaddr, f->bytes);
		for (t = 1; t < f->tail.fn_cnt && !err && !f->is_skipped; t++)
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
	join(&c->ranges, 0);
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

/* Is the file nothing but an allocator? */
static bool is_allocator_library(const struct elf_file *ef, const struct alloc_founds *all)
{
	const struct elf_segment *segs;
	bool is_known = false;
	uint64_t code_bytes = 0;
	size_t cnt, i;

	for (i = 0; i < all->cnt; i++) {
		if (all->data[i].family->is_libc)
			return false;
		is_known |= all->data[i].family != alloc_family_unknown();
	}
	segs = elf_file_segments(ef, &cnt);
	for (i = 0; i < cnt; i++)
		code_bytes += segs[i].is_exec ? segs[i].mem_bytes : 0;
	return is_known || code_bytes <= UNKNOWN_CODE_BYTES;
}

int alloc_inner_find(const struct alloc_calls *ac, const struct elf_file *ef, bool is_lib,
		     const struct alloc_founds *all, struct alloc_ranges *ret)
{
	struct ranges r = { 0 };
	int err;

	if (is_lib && is_allocator_library(ef, all))
		err = add_code(ac, ef, all, &r);
	else
		err = add_entries(all, is_lib, &r);
	if (err) {
		vec_release(&r.v);
		return err;
	}
	join(&r, 0);
	limit(&r);
	*ret = r.v;
	return 0;
}
