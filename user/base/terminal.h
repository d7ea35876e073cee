/* SPDX-License-Identifier: MIT */
/* terminal.h - how wide the text may be that a person reads. */
#ifndef HT_BASE_TERMINAL_H
#define HT_BASE_TERMINAL_H

/* What the environment says (COLUMNS), else the terminal that fd is: from min to max. 0: neither says. */
int terminal_columns(int fd, int min, int max);

#endif
