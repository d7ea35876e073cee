/* SPDX-License-Identifier: MIT */
/*
 * dwarf_lines.c - the line table of one unit, read by libdw, searched here.
 *
 * libdw puts a file's directory in front of its name. But up to DWARF 4 it does not put the unit's compilation
 * directory in front of a relative directory ("library/core/src" of Rust): that is done here.
 */
#include "symbol/dwarf_lookup_priv.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strset.h"

struct line_table {
	const char *comp_dir; /* NULL = unknown */
	struct strset *joined; /* paths that were joined here */
	Dwarf_Lines *lines;
	size_t line_cnt;
	Dwarf_Files *files;
	size_t file_cnt;
};

int line_table_open(Dwarf_Die *unit_die, struct line_table **ret)
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

void line_table_free(struct line_table *lt)
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

void line_table_find(struct line_table *lt, uint64_t vaddr, const char **ret_file,
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

const char *line_table_file(struct line_table *lt, uint32_t file)
{
	if (file >= lt->file_cnt)
		return NULL;
	return absolute(lt, dwarf_filesrc(lt->files, file, NULL, NULL));
}
