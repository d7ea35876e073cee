/* SPDX-License-Identifier: MIT */
/* process_page.h - the page at "/pid/N/": what one process holds, held and costs, and links to more. Pure. */
#ifndef HT_HTTP_PROCESS_PAGE_H
#define HT_HTTP_PROCESS_PAGE_H

#include <stdbool.h>
#include <stdio.h>

struct serve_process;
struct serve_view;

/* A line of the page, once: the place for what grows by stack (report.h), which takes a while. No name looks like
 * it. */
#define PROCESS_PAGE_STACKS "<!-- stacks -->\n"
/* p: one of v's. Writes HTML; names are foreign bytes and are escaped. 0 or -ENOMEM. */
int process_page_write(const struct serve_view *v, const struct serve_process *p, bool is_live,
		       FILE *out);

#endif
