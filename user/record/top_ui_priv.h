/* SPDX-License-Identifier: MIT */
/* top_ui_priv.h - the parts of top_ui.c: the terminal. */
#ifndef HT_RECORD_TOP_UI_PRIV_H
#define HT_RECORD_TOP_UI_PRIV_H

#include <stdbool.h>
#include <stddef.h>

struct top_page;
struct top_screen;

/*
 * top_screen.c: the terminal: its size, its keys, and a page on it. Thin: top_page.h decides what is on the page.
 *
 * A terminal that is unknown, or that cannot place a cursor ("dumb"), gets one page below the other as plain text.
 */

/* Uses standard input and output, both terminals. 0 or a negative errno, and then nothing is changed. */
int top_screen_open(bool has_color, struct top_screen **ret);
/* Restore the terminal. */
void top_screen_close(struct top_screen *s);
void top_screen_size(const struct top_screen *s, size_t *ret_columns, size_t *ret_lines);
void top_screen_draw(struct top_screen *s, const struct top_page *page);
/* A character or enum top_key; -1: none now. */
int top_screen_key(struct top_screen *s);

#endif
