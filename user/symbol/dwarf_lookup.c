/* SPDX-License-Identifier: MIT */
/*
 * dwarf_lookup.c - a join of many addresses with the DWARF of one file.
 *
 * 1. Every unit says which ranges it covers (only its own DIE is read, nothing below it). Each range is
 *    looked up among the requested addresses. So the units that own requested addresses are known, and all
 *    others are never opened. .debug_aranges is not used: clang writes none, and a table that covers only
 *    some units cannot be told from a complete one.
 * 2. In such a unit the functions are walked once and joined in the same way: first those at unit or
 *    namespace level; only when addresses are left also those inside types and other functions (methods of
 *    local classes).
 * 3. From the function down through lexical blocks into the inlined calls that cover the address.
 * 4. The unit's line table gives the innermost position, call_file and call_line give the others.
 *
 * libdw frees nothing before the handle is closed, and a line table can be 10 MB: the handle is reopened
 * between two units when the heap has grown past the bound.
 *
 * Does not read split DWARF (.dwo): its skeletons give lines, the symbol table gives the names.
 */
#include "symbol/dwarf_lookup.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <malloc.h>

#include "base/strset.h"
#include "base/vec.h"
#include "symbol/dwarf_lookup_priv.h"

/*
 * The line table of one unit, read by libdw, searched here.
 *
 * libdw puts a file's directory in front of its name. But up to DWARF 4 it does not put the unit's compilation
 * directory in front of a relative directory ("library/core/src" of Rust): that is done here.
 */

struct line_table {
	const char *comp_dir; /* NULL = unknown */
	struct strset *joined; /* paths that were joined here */
	Dwarf_Lines *lines;
	size_t line_cnt;
	Dwarf_Files *files;
	size_t file_cnt;
};

/* A unit without a (valid) line table gives an empty table. 0 or -ENOMEM. */
static int line_table_open(Dwarf_Die *unit_die, struct line_table **ret)
{
	struct line_table *lt = calloc(1, sizeof(*lt));
	Dwarf_Attribute attr;

	if (!lt)
		return -ENOMEM;
	lt->comp_dir = dwarf_formstring(dwarf_attr(unit_die, DW_AT_comp_dir, &attr));
	if (dwarf_getsrclines(unit_die, &lt->lines, &lt->line_cnt) != 0)
		lt->line_cnt = 0;
	if (dwarf_getsrcfiles(unit_die, &lt->files, &lt->file_cnt) != 0)
		lt->file_cnt = 0;
	*ret = lt;
	return 0;
}

static void line_table_free(struct line_table *lt)
{
	if (lt)
		strset_free(lt->joined);
	free(lt);
}

/* Put the compilation directory in front of a relative path. If that directory is relative itself ("./libio",
 * of reproducible builds), it is usually in the path already. */
static const char *absolute(struct line_table *lt, const char *path)
{
	char text[PATH_MAX];
	int64_t id;

	if (!path || path[0] == '/' || !lt->comp_dir)
		return path;
	if (lt->comp_dir[0] != '/' && strncmp(path, "../", 3) != 0)
		return path;
	if ((size_t)snprintf(text, sizeof(text), "%s/%s", lt->comp_dir, path) >= sizeof(text))
		return path;
	if (!lt->joined && strset_new(&lt->joined))
		return path;
	id = strset_add(lt->joined, text);
	return id < 0 ? path : strset_get(lt->joined, id);
}

/* *ret_file is NULL and *ret_line 0 when vaddr is not in the table. Strings live as long as the
 * table. */
static void line_table_find(struct line_table *lt, uint64_t vaddr, const char **ret_file,
			    uint32_t *ret_line)
{
	size_t low = 0, high = lt->line_cnt;
	Dwarf_Line *line;
	bool is_end = true;
	int lineno = 0;

	*ret_file = NULL;
	*ret_line = 0;
	/* last row at or below vaddr */
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		Dwarf_Addr at = 0;

		if (dwarf_lineaddr(dwarf_onesrcline(lt->lines, mid), &at) != 0)
			return;
		if (at <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0)
		return;
	line = dwarf_onesrcline(lt->lines, low - 1);
	if (!line || dwarf_lineendsequence(line, &is_end) != 0 || is_end)
		return;
	*ret_file = absolute(lt, dwarf_linesrc(line, NULL, NULL));
	if (dwarf_lineno(line, &lineno) == 0 && lineno > 0)
		*ret_line = (uint32_t)lineno;
}

/* File number as DW_AT_call_file has it, or NULL. */
static const char *line_table_file(struct line_table *lt, uint32_t file)
{
	if (file >= lt->file_cnt)
		return NULL;
	return absolute(lt, dwarf_filesrc(lt->files, file, NULL, NULL));
}

/*
 * The functions of a unit, and the addresses that were asked for.
 */

/* Limit of nested namespaces, types and blocks: deeper input is a bomb. */
#define DEPTH_CAP 200
/* Overlapping units (identical code folding) repeat addresses; a hostile file repeats them all. */
#define CLAIMS_PER_ADDR_CAP 16
#define CLAIMS_CAP_MIN 65536

/* "unit u says that it covers address a". In the order of units. */
struct claim {
	uint32_t unit;
	uint32_t addr;
};

struct unit {
	Dwarf_Off die_off;
};

/* The function found for an address of the current unit. */
struct owner {
	bool is_found;
	uint64_t range_vaddr, range_bytes; /* the tightest wins */
	Dwarf_Die die;
};

struct dwarf_frames_context {
	struct line_table *lines; /* of the function's unit */
	struct dwarf_scopes *scopes;
	bool is_relocatable; /* code may be at address 0 */
};

/* A walk over the ranges of a DIE, from all zeros. */
struct dwarf_range {
	Dwarf_Addr low, high; /* [low, high) */
	ptrdiff_t pos;
	Dwarf_Addr base; /* libdw's state, from one entry of a list to the next */
};

struct dwarf_lookup {
	int fd, alt_fd;
	uint64_t memory_bound_bytes;
	uint64_t memory_base_bytes;
	struct debug_image *img, *alt_img;
	Dwarf *dbg, *alt_dbg;
	struct dwarf_scopes *scopes;
	bool is_split, is_relocatable;

	const uint64_t *vaddr;
	size_t vaddr_cnt;
	uint8_t *is_done; /* per address */
	struct owner *owners; /* per address, for the current unit */
	VEC(struct unit) units;
	VEC(struct claim) claims;
	VEC(uint32_t) blind_units; /* units that do not say what they cover */
	/* addresses of the current unit, ascending */
	VEC(uint32_t) asked;
};

/*
 * Step to the next range; false at the end. Ranges of functions that the linker threw away start at 0 (or 1,
 * behind a range list's terminator) and are skipped: nothing is loaded there.
 */
static bool next_range(bool is_relocatable, Dwarf_Die *die, struct dwarf_range *range)
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

	while (next_range(c->is_relocatable, die, &range))
		if (range.low <= vaddr && vaddr < range.high)
			return true;
	return false;
}

/* Find the inlined call below parent that is nearest to it and covers vaddr. Blocks without addresses are
 * searched, too. */
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

/* Build the frames of vaddr, innermost first, at most DWARF_FRAMES_CAP; returns their number (at least 1).
 * Strings live as long as lines, scopes and the Dwarf handle. */
static size_t build_frames(const struct dwarf_frames_context *c, Dwarf_Die *function,
			   uint64_t vaddr, struct dwarf_frame *frames)
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

static uint64_t heap_bytes(void)
{
	struct mallinfo2 mi = mallinfo2();

	return mi.uordblks + mi.hblkhd;
}

static void close_handle(struct dwarf_lookup *dl)
{
	if (dl->scopes)
		dwarf_scopes_flush(dl->scopes);
	dwarf_end(dl->dbg);
	dwarf_end(dl->alt_dbg);
	dl->dbg = dl->alt_dbg = NULL;
}

__attribute__((noreturn)) static void out_of_memory(void)
{
	_exit(DWARF_EXIT_NO_MEMORY);
}

static Dwarf *begin(struct debug_image *img)
{
	Dwarf *dbg = dwarf_begin_elf(debug_image_elf(img), DWARF_C_READ, NULL);

	if (dbg)
		dwarf_new_oom_handler(dbg, out_of_memory);
	return dbg;
}

static int open_handle(struct dwarf_lookup *dl)
{
	dl->dbg = begin(dl->img);
	if (!dl->dbg)
		return -ENOEXEC;
	if (dl->alt_img)
		dl->alt_dbg = begin(dl->alt_img);
	if (dl->alt_dbg)
		dwarf_setalt(dl->dbg, dl->alt_dbg);
	return 0;
}

int dwarf_lookup_open(int fd, int alt_fd, uint64_t memory_bound_bytes, struct dwarf_lookup **ret)
{
	struct dwarf_lookup *dl = calloc(1, sizeof(*dl));
	GElf_Ehdr eh;
	int err;

	if (!dl)
		return -ENOMEM;
	dl->fd = fd;
	dl->alt_fd = alt_fd;
	dl->memory_bound_bytes = memory_bound_bytes;
	err = debug_image_open(fd, &dl->img);
	if (err)
		goto out;
	if (!debug_image_has_section(dl->img, ".debug_info") &&
	    !debug_image_has_section(dl->img, ".zdebug_info")) {
		err = -ENOENT;
		goto out;
	}
	if (gelf_getehdr(debug_image_elf(dl->img), &eh))
		dl->is_relocatable = eh.e_type == ET_REL;
	/* Without the dwz file common names are missing, the rest is correct. */
	if (alt_fd >= 0)
		(void)debug_image_open(alt_fd, &dl->alt_img);
	dl->memory_base_bytes = heap_bytes();
	err = dwarf_scopes_new(&dl->scopes);
	if (!err)
		err = open_handle(dl);
out:
	if (err)
		dwarf_lookup_free(dl);
	else
		*ret = dl;
	return err;
}

void dwarf_lookup_free(struct dwarf_lookup *dl)
{
	if (!dl)
		return;
	close_handle(dl);
	dwarf_scopes_free(dl->scopes);
	debug_image_free(dl->img);
	debug_image_free(dl->alt_img);
	free(dl->is_done);
	free(dl->owners);
	vec_release(&dl->units);
	vec_release(&dl->claims);
	vec_release(&dl->blind_units);
	vec_release(&dl->asked);
	free(dl);
}

bool dwarf_lookup_is_split(const struct dwarf_lookup *dl)
{
	return dl->is_split;
}

static int claim_range(struct dwarf_lookup *dl, uint32_t unit, uint64_t low, uint64_t high)
{
	size_t cap = dl->vaddr_cnt * CLAIMS_PER_ADDR_CAP + CLAIMS_CAP_MIN;

	for (size_t i = sorted_find(dl->vaddr, dl->vaddr_cnt, sizeof(*dl->vaddr), 0, low, false);
	     i < dl->vaddr_cnt && dl->vaddr[i] < high && dl->claims.cnt < cap; i++) {
		struct claim c = { .unit = unit, .addr = (uint32_t)i };

		if (vec_push(&dl->claims, c))
			return -ENOMEM;
	}
	return 0;
}

static int claim_unit(struct dwarf_lookup *dl, Dwarf_Die *unit_die)
{
	uint32_t idx = (uint32_t)dl->units.cnt;
	struct unit u = { .die_off = dwarf_dieoffset(unit_die) };
	struct dwarf_range range = { 0 };
	bool has_range = false;

	if (vec_push(&dl->units, u))
		return -ENOMEM;
	while (next_range(dl->is_relocatable, unit_die, &range)) {
		has_range = true;
		if (claim_range(dl, idx, range.low, range.high))
			return -ENOMEM;
	}
	/* A unit without code has no line table. */
	if (!has_range && !dwarf_hasattr(unit_die, DW_AT_ranges) &&
	    !dwarf_hasattr(unit_die, DW_AT_high_pc) && dwarf_hasattr(unit_die, DW_AT_stmt_list))
		return vec_push(&dl->blind_units, idx);
	return 0;
}

static int claim_units(struct dwarf_lookup *dl)
{
	Dwarf_CU *cu = NULL, *next;
	uint8_t type;
	Dwarf_Die die;
	int err = 0;

	while (!err && dwarf_get_units(dl->dbg, cu, &next, NULL, &type, &die, NULL) == 0) {
		cu = next;
		if (type == DW_UT_skeleton)
			dl->is_split = true;
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			err = claim_unit(dl, &die);
	}
	return err;
}

/* Make a function the owner of the unit's requested addresses that lie in its ranges. */
static void claim_function(struct dwarf_lookup *dl, Dwarf_Die *die)
{
	struct dwarf_range range = { 0 };

	while (next_range(dl->is_relocatable, die, &range)) {
		uint64_t bytes = range.high - range.low;
		size_t a = 0, b = dl->asked.cnt;

		while (a < b) {
			size_t mid = a + (b - a) / 2;

			if (dl->vaddr[dl->asked.data[mid]] < range.low)
				a = mid + 1;
			else
				b = mid;
		}
		for (; a < dl->asked.cnt && dl->vaddr[dl->asked.data[a]] < range.high; a++) {
			struct owner *o = &dl->owners[dl->asked.data[a]];

			if (o->is_found && o->range_bytes <= bytes)
				continue;
			o->is_found = true;
			o->range_vaddr = range.low;
			o->range_bytes = bytes;
			o->die = *die;
		}
	}
}

static bool is_type_scope(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
	       tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type ||
	       tag == DW_TAG_interface_type || tag == DW_TAG_variant_part || tag == DW_TAG_variant;
}

/* deep: also functions inside types, functions and blocks. */
static void walk_functions(struct dwarf_lookup *dl, Dwarf_Die *parent, bool deep, int depth)
{
	Dwarf_Die die;

	if (depth >= DEPTH_CAP || dwarf_child(parent, &die) != 0)
		return;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_subprogram)
			claim_function(dl, &die);
		if (tag == DW_TAG_namespace || tag == DW_TAG_module ||
		    (deep && (is_type_scope(tag) || tag == DW_TAG_subprogram ||
			      tag == DW_TAG_lexical_block)))
			walk_functions(dl, &die, deep, depth + 1);
	} while (dwarf_siblingof(&die, &die) == 0);
}

static int resolve_addr(struct dwarf_lookup *dl, struct line_table *lines, uint32_t addr,
			dwarf_emit_fn emit, void *ctx)
{
	struct dwarf_frame frames[DWARF_FRAMES_CAP];
	const struct dwarf_frames_context unit = {
		.lines = lines,
		.scopes = dl->scopes,
		.is_relocatable = dl->is_relocatable,
	};
	struct owner *o = &dl->owners[addr];
	size_t cnt = 1;

	if (o->is_found) {
		cnt = build_frames(&unit, &o->die, dl->vaddr[addr], frames);
		frames[cnt - 1].range_vaddr = o->range_vaddr;
	} else {
		memset(frames, 0, sizeof(frames[0]));
		line_table_find(lines, dl->vaddr[addr], &frames[0].file, &frames[0].line);
		if (!frames[0].file)
			return 0;
	}
	dl->is_done[addr] = 1;
	return emit(ctx, addr, frames, cnt);
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* A unit's ranges come in any order and may overlap. */
static void sort_asked(struct dwarf_lookup *dl)
{
	size_t kept = 0;

	qsort(dl->asked.data, dl->asked.cnt, sizeof(*dl->asked.data), compare_u32);
	for (size_t i = 0; i < dl->asked.cnt; i++)
		if (kept == 0 || dl->asked.data[kept - 1] != dl->asked.data[i])
			dl->asked.data[kept++] = dl->asked.data[i];
	dl->asked.cnt = kept;
}

/* Resolve all of dl->asked, which belong to one unit. */
static int resolve_unit(struct dwarf_lookup *dl, uint32_t unit, dwarf_emit_fn emit, void *ctx)
{
	struct line_table *lines = NULL;
	bool is_complete = true;
	Dwarf_Die unit_die;
	int err = 0;

	if (!dwarf_offdie(dl->dbg, dl->units.data[unit].die_off, &unit_die))
		return 0;
	for (size_t i = 0; i < dl->asked.cnt; i++)
		dl->owners[dl->asked.data[i]].is_found = false;
	walk_functions(dl, &unit_die, false, 0);
	for (size_t i = 0; i < dl->asked.cnt; i++)
		is_complete = is_complete && dl->owners[dl->asked.data[i]].is_found;
	if (!is_complete)
		walk_functions(dl, &unit_die, true, 0);
	err = line_table_open(&unit_die, &lines);
	for (size_t i = 0; i < dl->asked.cnt && !err; i++)
		err = resolve_addr(dl, lines, dl->asked.data[i], emit, ctx);
	line_table_free(lines);
	return err;
}

/* Drop what libdw has read when it is too much. */
static int bound_memory(struct dwarf_lookup *dl)
{
	if (heap_bytes() < dl->memory_base_bytes + dl->memory_bound_bytes)
		return 0;
	close_handle(dl);
	malloc_trim(0);
	debug_image_drop_pages(dl->img);
	if (dl->alt_img)
		debug_image_drop_pages(dl->alt_img);
	return open_handle(dl) ? -ENOMEM : 0;
}

static int resolve_claims(struct dwarf_lookup *dl, dwarf_emit_fn emit, void *ctx)
{
	size_t i = 0;
	int err = 0;

	while (i < dl->claims.cnt && !err) {
		uint32_t unit = dl->claims.data[i].unit;

		dl->asked.cnt = 0;
		for (; i < dl->claims.cnt && dl->claims.data[i].unit == unit; i++) {
			uint32_t addr = dl->claims.data[i].addr;

			if (!dl->is_done[addr] && vec_push(&dl->asked, addr))
				return -ENOMEM;
		}
		if (!dl->asked.cnt)
			continue;
		sort_asked(dl);
		err = resolve_unit(dl, unit, emit, ctx);
		if (!err)
			err = bound_memory(dl);
	}
	return err;
}

/* Units that do not say what they cover are asked for all remaining addresses. */
static int resolve_blind(struct dwarf_lookup *dl, dwarf_emit_fn emit, void *ctx)
{
	int err = 0;

	for (size_t u = 0; u < dl->blind_units.cnt && !err; u++) {
		dl->asked.cnt = 0;
		for (size_t i = 0; i < dl->vaddr_cnt; i++)
			if (!dl->is_done[i] && vec_push(&dl->asked, (uint32_t)i))
				return -ENOMEM;
		if (!dl->asked.cnt)
			return 0;
		err = resolve_unit(dl, dl->blind_units.data[u], emit, ctx);
		if (!err)
			err = bound_memory(dl);
	}
	return err;
}

int dwarf_lookup_run(struct dwarf_lookup *dl, const uint64_t *vaddr, size_t vaddr_cnt,
		     dwarf_emit_fn emit, void *ctx)
{
	int err;

	if (vaddr_cnt == 0)
		return 0;
	if (vaddr_cnt > UINT32_MAX / 2)
		return -EINVAL;
	dl->vaddr = vaddr;
	dl->vaddr_cnt = vaddr_cnt;
	dl->units.cnt = dl->claims.cnt = dl->blind_units.cnt = 0;
	free(dl->is_done);
	free(dl->owners);
	dl->is_done = calloc(vaddr_cnt, 1);
	dl->owners = calloc(vaddr_cnt, sizeof(*dl->owners));
	if (!dl->is_done || !dl->owners)
		return -ENOMEM;
	err = claim_units(dl);
	if (!err)
		err = resolve_claims(dl, emit, ctx);
	if (!err)
		err = resolve_blind(dl, emit, ctx);
	return err;
}
