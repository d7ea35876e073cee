/* SPDX-License-Identifier: MIT */
/* terminal.h - the terminal that is written to: its width, colour and length; and text wrapped to a width. */
#ifndef HT_BASE_TERMINAL_H
#define HT_BASE_TERMINAL_H

#include "base/std.h"

/* Return the columns of the environment (COLUMNS), else of the terminal at fd: from min to max. 0: neither is known. */
int terminal_columns(int fd, int min, int max);

enum terminal_color { TERMINAL_COLOR_AUTO, TERMINAL_COLOR_ALWAYS, TERMINAL_COLOR_NEVER };
/* AUTO: if fd is a terminal, unless NO_COLOR is set or TERM is "dumb". */
bool terminal_has_color(int fd, enum terminal_color when);

/* Write the words of a text from column `at` on; further lines are indented. A number stays with its unit. Return the column
 * behind. */
int terminal_put_words(const char *text, int at, int indent, int columns, FILE *out);

/*
 * Write text to the standard output, through a pager if it is a terminal with fewer lines. The pager is the value of
 * PAGER, else less if it is installed; "" and "cat" mean none. 0 or a negative errno.
 */
int terminal_page(const char *text, bool may_page);

#endif
