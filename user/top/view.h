/* SPDX-License-Identifier: MIT */
/*
 * view.h - which rows of a table are looked at, and in which order: what keys change. Pure.
 */
#ifndef HT_TOP_VIEW_H
#define HT_TOP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hmap.h"
#include "base/vec.h"
#include "top/table.h"

enum top_sort { TOP_BY_HELD, TOP_BY_GROWTH, TOP_BY_ALLOC };
extern const char *const top_sort_names[];

/* Keys that are no characters. */
enum top_key {
	TOP_KEY_UP = 0x110000, /* beyond all characters */
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_ENTER,
	TOP_KEY_BACK, /* Escape, left */
	TOP_KEY_ERASE, /* backspace */
	TOP_KEY_RESIZE,
	TOP_KEY_GONE, /* the terminal */
};

enum top_wish {
	TOP_NOTHING,
	TOP_DRAW, /* the same table, otherwise */
	TOP_LOAD, /* another table: what or pid has changed */
	TOP_QUIT,
};

#define TOP_SEARCH_BUF 128
struct top_view {
	enum top_what what;
	enum top_what of_process; /* the view that was chosen last: one that is opened has it */
	pid_t pid; /* of a process, else 0 */
	enum top_sort sort;
	bool is_paused, shows_help, is_typing;
	char search[TOP_SEARCH_BUF]; /* rows without it are not shown; "": all are */
	char *selected; /* the key of a row; NULL: the first */
	struct hmap turned; /* keys whose fold is not what it is to begin with */
	size_t first_line; /* that is on the screen, of those that there are */
	size_t body_lines; /* the room for rows, as it was last drawn */
	VEC(size_t) order; /* rows that are shown, see top_view_arrange() */
};

void top_view_init(struct top_view *v);
void top_view_release(struct top_view *v);
/* Fills order: sorted, each before what lies in it; without what is folded or not searched for. 0 or -ENOMEM. */
int top_view_arrange(struct top_view *v, const struct top_table *t);
/* Where the selected row is in order. */
size_t top_view_selected(const struct top_view *v, const struct top_table *t);
/* By scope: what lies in it is not shown. By stack: its frames are not. */
bool top_view_is_folded(const struct top_view *v, const struct top_row *row);
/* key: a character, a byte of one that is no ASCII, or enum top_key. t: NULL when there is none yet. */
enum top_wish top_view_key(struct top_view *v, const struct top_table *t, int key);

#endif
