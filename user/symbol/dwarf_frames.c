/* SPDX-License-Identifier: MIT */
/*
 * dwarf_frames.c - one address in a function that is known: the inlined calls around it.
 */
#include "symbol/dwarf_frames.h"

#include <dwarf.h>
#include <string.h>

/* Nesting of blocks: deeper input is a bomb. */
#define DEPTH_CAP 200

bool dwarf_next_range(bool is_relocatable, Dwarf_Die *die, struct dwarf_range *range)
{
	do {
		range->pos = dwarf_ranges(die, range->pos, &range->base, &range->low, &range->high);
		if (range->pos <= 0)
			return false;
	} while (range->low >= range->high || (range->low <= 1 && !is_relocatable));
	return true;
}

static bool is_block(int tag)
{
	return tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

static bool covers(const struct dwarf_frames_context *c, Dwarf_Die *die, uint64_t vaddr)
{
	struct dwarf_range range = { 0 };

	while (dwarf_next_range(c->is_relocatable, die, &range))
		if (range.low <= vaddr && vaddr < range.high)
			return true;
	return false;
}

/* Below parent: the inlined call nearest to it that covers vaddr. Blocks without addresses are
 * looked through. */
static bool find_inlined(const struct dwarf_frames_context *c, Dwarf_Die *parent, uint64_t vaddr,
			 int depth, Dwarf_Die *ret)
{
	Dwarf_Die die;

	if (depth >= DEPTH_CAP || dwarf_child(parent, &die) != 0)
		return false;
	do {
		int tag = dwarf_tag(&die);
		bool has_pc;

		if (tag == DW_TAG_inlined_subroutine && covers(c, &die, vaddr)) {
			*ret = die;
			return true;
		}
		if (!is_block(tag))
			continue;
		has_pc = dwarf_hasattr(&die, DW_AT_low_pc) || dwarf_hasattr(&die, DW_AT_ranges);
		if ((!has_pc || covers(c, &die, vaddr)) &&
		    find_inlined(c, &die, vaddr, depth + 1, ret))
			return true;
	} while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

static const char *string_attr(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	const char *s;

	if (!dwarf_attr_integrate(die, name, &attr))
		return NULL;
	s = dwarf_formstring(&attr);
	return s && s[0] ? s : NULL;
}

static uint32_t number_attr(Dwarf_Die *die, unsigned int name, bool is_inherited)
{
	Dwarf_Attribute attr;
	Dwarf_Word val;

	if (!(is_inherited ? dwarf_attr_integrate(die, name, &attr) : dwarf_attr(die, name, &attr)))
		return 0;
	if (dwarf_formudata(&attr, &val) != 0 || val > UINT32_MAX)
		return 0;
	return (uint32_t)val;
}

static void name_frame(const struct dwarf_frames_context *c, Dwarf_Die *die, struct dwarf_frame *f)
{
	f->linkage_name = string_attr(die, DW_AT_linkage_name);
	if (!f->linkage_name)
		f->linkage_name = string_attr(die, DW_AT_MIPS_linkage_name);
	f->name = string_attr(die, DW_AT_name);
	if (f->name && !f->linkage_name)
		f->qualified_name = dwarf_scopes_qualify(c->scopes, die, f->name);
	if (!f->name)
		f->name = f->linkage_name;
	f->start_line = number_attr(die, DW_AT_decl_line, true);
}

size_t dwarf_frames_build(const struct dwarf_frames_context *c, Dwarf_Die *function, uint64_t vaddr,
			  struct dwarf_frame *frames)
{
	Dwarf_Die chain[DWARF_FRAMES_CAP];
	size_t cnt = 1;
	uint32_t line = 0;
	const char *file = NULL;

	chain[0] = *function;
	while (cnt < DWARF_FRAMES_CAP && find_inlined(c, &chain[cnt - 1], vaddr, 0, &chain[cnt]))
		cnt++;
	line_table_find(c->lines, vaddr, &file, &line);
	for (size_t i = 0; i < cnt; i++) {
		Dwarf_Die *die = &chain[cnt - 1 - i];

		memset(&frames[i], 0, sizeof(frames[i]));
		name_frame(c, die, &frames[i]);
		frames[i].file = file;
		frames[i].line = line;
		file = line_table_file(c->lines, number_attr(die, DW_AT_call_file, false));
		line = number_attr(die, DW_AT_call_line, false);
	}
	return cnt;
}
