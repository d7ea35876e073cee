/* SPDX-License-Identifier: MIT */
/* process_page_priv.h - what process_page.c is made of: two moments to compare. */
#ifndef HT_HTTP_PROCESS_PAGE_PRIV_H
#define HT_HTTP_PROCESS_PAGE_PRIV_H

#include <stdbool.h>
#include <stdio.h>

struct serve_process;
struct serve_view;

/*
 * moments_part.c: the part of a process's page in which two moments are chosen, to see what changed: links, and a form
 * where the page is still. Pure.
 */

void moments_part_write(const struct serve_view *v, const struct serve_process *p, bool is_live,
			FILE *out);

#endif
