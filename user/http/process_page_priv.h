/* SPDX-License-Identifier: MIT */
/* process_page_priv.h - the parts of process_page.c: two moments to compare. */
#ifndef HT_HTTP_PROCESS_PAGE_PRIV_H
#define HT_HTTP_PROCESS_PAGE_PRIV_H

#include <stdbool.h>
#include <stdio.h>

struct serve_process;
struct serve_view;

/*
 * moments_part.c: the part of a process's page for choosing two moments, to see what changed: links, and a form if
 * the page is still. Pure.
 */

void moments_part_write(const struct serve_view *v, const struct serve_process *p, bool is_live,
			FILE *out);

#endif
