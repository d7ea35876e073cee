/* SPDX-License-Identifier: MIT */
/* index_page.h - the page at "/": who is followed, what they hold, and where to get it. Pure. */
#ifndef HT_HTTP_INDEX_PAGE_H
#define HT_HTTP_INDEX_PAGE_H

#include <stdbool.h>
#include <stdio.h>

struct serve_view;

/* HTML; names of processes are somebody else's bytes and are escaped. */
void index_page_write(const struct serve_view *v, bool is_live, FILE *out);

#endif
