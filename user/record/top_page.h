/* SPDX-License-Identifier: MIT */
/*
 * top_page.h - a table as lines of text for a screen of any size. Pure.
 *
 * No line is wider than the screen, and numbers are never cut: columns without room are left out, the least needed
 * first. The text is UTF-8 without control characters.
 */
#ifndef HT_RECORD_TOP_PAGE_H
#define HT_RECORD_TOP_PAGE_H

#include <stdbool.h>
#include <stddef.h>

struct top_table;
struct top_view;

#define TOP_COLUMNS_MAX 400
#define TOP_LINE_BUF (4 * TOP_COLUMNS_MAX + 1) /* bytes of UTF-8 */

enum top_paint { TOP_PLAIN, TOP_HEAD, TOP_TITLES, TOP_SELECTED, TOP_DIM, TOP_WARN };
struct top_line {
	char text[TOP_LINE_BUF];
	enum top_paint paint;
};

struct top_page {
	struct top_line *lines;
	size_t line_cnt, columns;
};

/* Messages beside the table. */
struct top_news {
	const char *message; /* the last message, or why there is no table; "": none */
	bool is_over; /* the process has ended: the table does not change any more */
};

/* t: NULL when there is none yet. Arranges v anew and scrolls it. 0 or -ENOMEM. */
int top_page_draw(struct top_view *v, const struct top_table *t, const struct top_news *news,
		  size_t columns, size_t lines, struct top_page *ret);
void top_page_release(struct top_page *p);

#endif
