/* SPDX-License-Identifier: MIT */
/* page_parts.h - common parts of the pages for people. Internal to index_page.c and process_page.c. */
#ifndef HT_HTTP_PAGE_PARTS_H
#define HT_HTTP_PAGE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/units.h"

struct serve_kept;
struct serve_process;
struct serve_view;

/* The browser fetches a live page again after this, without a script. */
#define PAGE_LIVE_S 10
/* Write the beginning of a page, up to its title, which is the heading, too. */
void page_begin(const char *title, bool is_live, FILE *out);
void page_end(FILE *out);
/* Write foreign bytes as text. */
void page_put_text(const char *text, FILE *out);
const char *page_bytes(double bytes, char buf[UNITS_BUF]);
/* What in use cannot explain, as a sentence after `before`; nothing if there is none. */
void page_put_growth_words(const struct serve_process *p, const char *before, FILE *out);
/* Write the probes' share of its CPU time, and what is given up for it. */
void page_put_overhead(const struct serve_process *p, FILE *out);
/* Write a row of a saved profile; base: of links to /pid/, such as "pid/" or "../". */
void page_put_kept(const struct serve_kept *k, const char *base, FILE *out);
#define PAGE_KEPT_TITLES "<th>pid<th>name<th>in use<th>size<th>taken<th>profile<th>why\n"
void page_put_losses(const struct serve_view *v, FILE *out);

#endif
