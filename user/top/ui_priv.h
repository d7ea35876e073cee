/* SPDX-License-Identifier: MIT */
/* ui_priv.h - what ui.c is made of: the terminal. */
#ifndef HT_TOP_UI_PRIV_H
#define HT_TOP_UI_PRIV_H

#include <stdbool.h>
#include <stddef.h>

struct top_page;
struct top_screen;

/*
 * screen.c: the terminal: its size, its keys, and a page on it. Thin: what is on the page is page.h's.
 *
 * A terminal of which nothing is known, or that has no place to put a cursor ("dumb"), gets one page below the other
 * as plain text.
 */

/* Standard input and output, both terminals. 0 or a negative errno; nothing is changed then. */
int top_screen_open(bool has_color, struct top_screen **ret);
/* The terminal is as it was. */
void top_screen_close(struct top_screen *s);
void top_screen_size(const struct top_screen *s, size_t *ret_columns, size_t *ret_lines);
void top_screen_draw(struct top_screen *s, const struct top_page *page);
/* A character or enum top_key; -1: there is none now. */
int top_screen_key(struct top_screen *s);

#endif
