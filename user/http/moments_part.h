/* SPDX-License-Identifier: MIT */
/*
 * moments_part.h - the part of a process's page in which two moments are chosen, to see what changed: links, and a form
 * where the page is still. Internal to process_page.c. Pure.
 */
#ifndef HT_HTTP_MOMENTS_PART_H
#define HT_HTTP_MOMENTS_PART_H

#include <stdbool.h>
#include <stdio.h>

struct serve_process;
struct serve_view;

void moments_part_write(const struct serve_view *v, const struct serve_process *p, bool is_live,
			FILE *out);

#endif
