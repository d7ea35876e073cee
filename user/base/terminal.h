/* SPDX-License-Identifier: MIT */
/* terminal.h - what stands at the other end of the standard output: how wide, coloured, how long. */
#ifndef HT_BASE_TERMINAL_H
#define HT_BASE_TERMINAL_H

#include <stdbool.h>

/* What the environment says (COLUMNS), else the terminal that fd is: from min to max. 0: neither says. */
int terminal_columns(int fd, int min, int max);

enum terminal_color { TERMINAL_COLOR_AUTO, TERMINAL_COLOR_ALWAYS, TERMINAL_COLOR_NEVER };
/* AUTO: on a terminal, unless NO_COLOR is set or TERM is "dumb". */
bool terminal_has_color(enum terminal_color when);

/*
 * Text to the standard output; through a pager where that is a terminal with fewer lines. The pager is
 * what PAGER says, else less where there is one; "" and "cat" are none. 0 or a negative errno.
 */
int terminal_page(const char *text, bool may_page);

#endif
