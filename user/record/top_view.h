/* SPDX-License-Identifier: MIT */
/* top_view.h - which rows of a table are shown, and in which order: the state that keys change. Pure. */
#ifndef HT_RECORD_TOP_VIEW_H
#define HT_RECORD_TOP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hmap.h"
#include "base/vec.h"
#include "record/top_table.h"

enum top_sort { TOP_BY_HELD, TOP_BY_GROWTH, TOP_BY_ALLOC };
extern const char *const top_sort_names[];

/* Keys that are not characters. */
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
	TOP_KEY_GONE, /* the terminal is gone */
};

enum top_wish {
	TOP_NOTHING,
	TOP_DRAW, /* the same table, shown differently */
	TOP_LOAD, /* another table: what has changed */
	TOP_QUIT,
};

#define TOP_SEARCH_BUF 128
struct top_view {
	enum top_what what;
	enum top_what of_process; /* the view chosen last; used when the process is opened */
	pid_t pid; /* of the process shown, else 0 */
	enum top_sort sort;
	bool is_paused, shows_help, is_typing;
	char search[TOP_SEARCH_BUF]; /* rows without it are hidden; "": none are */
	char *selected; /* the key of a row; NULL: the first */
	struct hmap turned; /* keys of rows that are not folded as by default */
	size_t first_line; /* first line on the screen, of all lines */
	size_t body_lines; /* lines for rows, when last drawn */
	VEC(size_t) order; /* rows that are shown: see top_view_arrange() */
};

void top_view_init(struct top_view *v);
void top_view_release(struct top_view *v);
/* Fill order: sorted, each row before those in it; without rows that are folded or do not match search. 0 or
 * -ENOMEM. */
int top_view_arrange(struct top_view *v, const struct top_table *t);
/* The index of the selected row in order. */
size_t top_view_selected(const struct top_view *v, const struct top_table *t);
/* True if the rows in it are hidden; by stack: its frames. */
bool top_view_is_folded(const struct top_view *v, const struct top_row *row);
/* key: a character, a byte of a non-ASCII one, or enum top_key. t: NULL when there is none yet. */
enum top_wish top_view_key(struct top_view *v, const struct top_table *t, int key);

#endif
