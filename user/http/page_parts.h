/* SPDX-License-Identifier: MIT */
/*
 * page_parts.h - common parts of the pages for people. Internal to index_page.c and process_page.c.
 *
 * A page is drawn by a script of this server (index.js, process.js) from JSON (page_json.h) that the page brings along,
 * so that the first picture needs no second request. What a browser without scripts shows is in <noscript>.
 */
#ifndef HT_HTTP_PAGE_PARTS_H
#define HT_HTTP_PAGE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/units.h"

struct serve_kept;
struct serve_process;
struct serve_view;

/* A live page is fetched again after this. */
#define PAGE_LIVE_S 10
struct page_head {
	const char *title;
	const char *base; /* of links to the index: "" or "../../" */
	bool is_live; /* false: it begins paused */
};
/* Write the beginning of a page, with links to the other pages. */
void page_begin(const struct page_head *head, FILE *out);
/* The JSON, the scripts and the end. script: "index.js". */
void page_end(const struct page_head *head, const char *script, const char *json, FILE *out);
/* Begin the part for browsers without scripts, with its heading. */
void page_begin_plain(const struct page_head *head, FILE *out);
void page_end_plain(FILE *out);
/* Write foreign bytes as text. */
void page_put_text(const char *text, FILE *out);
const char *page_bytes(double bytes, char buf[UNITS_BUF]);
/* What in use cannot explain, as a sentence after `before`; nothing if there is none. */
void page_put_growth_words(const struct serve_process *p, const char *before, FILE *out);
/* Write the probes' share of its CPU time, and what is given up for it. */
void page_put_overhead(const struct serve_process *p, FILE *out);
/* Write a row of a saved profile; base: of links to /pid/, such as "pid/" or "../". */
void page_put_kept(const struct serve_kept *k, const char *base, FILE *out);
#define PAGE_KEPT_TITLES "<th>PID<th>name<th>in use<th>size<th>taken (UTC)<th>profile<th>why\n"
void page_put_losses(const struct serve_view *v, FILE *out);

#endif
