/* SPDX-License-Identifier: MIT */
/* index_page.h - the page at "/": the followed processes, what they hold, and links to their profiles. Pure. */
#ifndef HT_HTTP_INDEX_PAGE_H
#define HT_HTTP_INDEX_PAGE_H

#include <stdbool.h>
#include <stdio.h>

struct serve_view;

/* Writes HTML; names of processes are foreign bytes and are escaped. 0 or -ENOMEM. */
int index_page_write(const struct serve_view *v, bool is_live, FILE *out);

#endif
