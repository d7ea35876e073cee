/* SPDX-License-Identifier: MIT */
/*
 * dwarf_lines.c - line table of one unit, read by libdw, searched here.
 */
#include "symbol/dwarf_lines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

struct line_table {
	Dwarf_Lines *lines;
	size_t line_cnt;
	Dwarf_Files *files;
	size_t file_cnt;
};

int line_table_open(Dwarf_Die *unit_die, struct line_table **ret)
{
	struct line_table *lt = calloc(1, sizeof(*lt));

	if (!lt)
		return -ENOMEM;
	if (dwarf_getsrclines(unit_die, &lt->lines, &lt->line_cnt) != 0)
		lt->line_cnt = 0;
	if (dwarf_getsrcfiles(unit_die, &lt->files, &lt->file_cnt) != 0)
		lt->file_cnt = 0;
	*ret = lt;
	return 0;
}

void line_table_free(struct line_table *lt)
{
	free(lt);
}

void line_table_find(const struct line_table *lt, uint64_t vaddr, const char **ret_file,
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
	*ret_file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &lineno) == 0 && lineno > 0)
		*ret_line = (uint32_t)lineno;
}

const char *line_table_file(const struct line_table *lt, uint32_t file)
{
	return file < lt->file_cnt ? dwarf_filesrc(lt->files, file, NULL, NULL) : NULL;
}
