/* SPDX-License-Identifier: MIT */
/*
 * dwarf_lines.h - the line table of one compile unit: address -> file and line.
 */
#ifndef HT_SYMBOL_DWARF_LINES_H
#define HT_SYMBOL_DWARF_LINES_H

#include <elfutils/libdw.h>
#include <stdint.h>

struct line_table;

/* A unit without a (sound) line table gives an empty one. 0 or -ENOMEM. */
int line_table_open(Dwarf_Die *unit_die, struct line_table **ret);
void line_table_free(struct line_table *lt);
/* *ret_file is NULL and *ret_line 0 when vaddr is not in the table. Strings live as long as the
 * table. */
void line_table_find(struct line_table *lt, uint64_t vaddr, const char **ret_file,
		     uint32_t *ret_line);
/* File number as DW_AT_call_file has it, or NULL. */
const char *line_table_file(struct line_table *lt, uint32_t file);

#endif
