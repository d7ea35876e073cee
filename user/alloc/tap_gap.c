/* SPDX-License-Identifier: MIT */
/*
 * tap_gap.c - finds gaps: five bytes that are never executed, within reach of a short jump. Compilers fill what is
 * behind a ret or a jump, up to the next aligned address, with nop or int3.
 *
 * Not seen: a jump to such filling through a table or from another function. Nothing would be there to jump to.
 */

#include "alloc/tap_spot.h"
#include "alloc/placement_priv.h"
#include "elf/elf_symbols.h"
#include "elf/unwind_table.h"

#define FUNCTION_BYTES_CAP 8192 /* longer functions are not searched for a gap */
#define SEARCH_BYTES 64 /* roughly the bytes of the instructions that are searched for a spot */
#define SHORT_BACK 128
#define SHORT_AHEAD 127

static bool is_taken(const struct tap_gaps *gaps, uint64_t vaddr)
{
	for (size_t i = 0; i < gaps->cnt; i++)
		if (vaddr < gaps->vaddr[i] + TAP_LONG_JUMP_BYTES &&
		    gaps->vaddr[i] < vaddr + TAP_LONG_JUMP_BYTES)
			return true;
	return false;
}

/* The first gap in the run that can be reached and is free. */
static uint64_t gap_in(const struct tap_gaps *gaps, const struct tap_run *r, uint64_t from_vaddr)
{
	for (uint64_t v = r->start; v + TAP_LONG_JUMP_BYTES <= r->end; v++) {
		int64_t off = (int64_t)(v - from_vaddr);

		if (off >= -SHORT_BACK && off <= SHORT_AHEAD && !is_taken(gaps, v))
			return v;
	}
	return 0;
}

static void add_run(struct tap_gap_search *gs, uint64_t start, uint64_t end)
{
	if (start && end - start >= TAP_LONG_JUMP_BYTES && gs->run_cnt < TAP_RUNS_CAP)
		gs->run[gs->run_cnt++] = (struct tap_run){ start, end };
}

/* Drop the runs from the nth on that the code jumps into. */
static void drop_targets(struct tap_gap_search *gs, size_t nth, const struct code *c, csh h,
			 cs_insn *in)
{
	const uint8_t *p = c->bytes;
	uint64_t vaddr = c->vaddr, target;
	size_t left = c->cnt;

	while (nth < gs->run_cnt && cs_disasm_iter(h, &p, &left, &vaddr, in)) {
		enum kind k = insn_classify(in, &target);

		for (size_t i = nth; i < gs->run_cnt && k >= KIND_JMP && k <= KIND_JCC; i++)
			if (target >= gs->run[i].start && target < gs->run[i].end)
				gs->run[i--] = gs->run[--gs->run_cnt];
	}
}

/* Find runs in one function, and in the padding up to the next one. */
static void find_runs_of(struct tap_gap_search *gs, uint64_t start, uint64_t end)
{
	uint64_t vaddr, target, run = 0;
	size_t left, first = gs->run_cnt;
	bool is_dead = false;
	const uint8_t *p;
	struct code c;
	cs_insn *in;
	csh h;

	if (end - start > FUNCTION_BYTES_CAP || code_open(gs->ef, start, end - start, &c) ||
	    decoder_open(false, &h, &in))
		return;
	p = c.bytes;
	left = c.cnt;
	vaddr = c.vaddr;
	while (cs_disasm_iter(h, &p, &left, &vaddr, in)) {
		enum kind k = insn_classify(in, &target);

		if (is_dead && (insn_is_nop(in) || in->id == X86_INS_INT3)) {
			run = run ? run : in->address;
			continue;
		}
		add_run(gs, run, in->address);
		run = 0;
		is_dead = k == KIND_JMP || k == KIND_RET || k == KIND_INDIRECT_JMP ||
			  k == KIND_SLOT_JMP || in->id == X86_INS_UD2 || in->id == X86_INS_HLT;
	}
	add_run(gs, run, vaddr);
	drop_targets(gs, first, &c, h, in);
	decoder_close(h, in);
}

bool tap_function_at(const struct fde_index *fdes, const struct elf_symbols *syms, uint64_t vaddr,
		     uint64_t *ret_start, uint64_t *ret_end)
{
	const struct elf_symbol *all;
	size_t cnt, low;

	if (fdes->cnt)
		return fde_index_find(fdes, vaddr, ret_start, ret_end);
	all = elf_symbols_all(syms, &cnt);
	low = sorted_find(all, cnt, sizeof(*all), sorted_off(all, vaddr), vaddr, true);
	if (!low || low == cnt)
		return false;
	*ret_start = all[low - 1].vaddr;
	*ret_end = all[low].vaddr;
	return true;
}

/* Find all runs that a short jump of this function could reach, once: decoding is the cost. */
static void find_runs(struct tap_gap_search *gs)
{
	uint64_t vaddr = gs->fn_vaddr - SHORT_BACK, start, end;

	gs->has_runs = true;
	while (vaddr <= gs->fn_vaddr + SEARCH_BYTES + SHORT_AHEAD &&
	       tap_function_at(gs->fdes, gs->syms, vaddr, &start, &end) && end > vaddr) {
		find_runs_of(gs, start, end);
		vaddr = end;
	}
}

uint64_t tap_gap_find(struct tap_gap_search *gs, uint64_t from_vaddr)
{
	uint64_t found = 0;

	if (!gs->has_runs)
		find_runs(gs);
	for (size_t i = 0; i < gs->run_cnt && !found; i++)
		found = gap_in(gs->gaps, &gs->run[i], from_vaddr);
	return found;
}
