/* SPDX-License-Identifier: MIT */
/*
 * page_json.h - the data of the pages as JSON: at /api and /pid/N/api, and within the pages themselves. Pure.
 *
 * Bounded: a process takes some 450 bytes in the index besides its names, its own page 50 KiB besides its scopes; at
 * most PAGE_JSON_SAVED_MAX saved profiles and PAGE_JSON_OTHERS_MAX other processes are listed. Numbers and texts that are not known are left out. The keys are
 * described in heaptap-serve(1), and stable: new ones may be added.
 */
#ifndef HT_HTTP_PAGE_JSON_H
#define HT_HTTP_PAGE_JSON_H

#include <stdio.h>

struct serve_process;
struct serve_view;

#define PAGE_JSON_SAVED_MAX 100
#define PAGE_JSON_OTHERS_MAX 300
#define PAGE_JSON_POINTS 40 /* of the small line of a process in the index */

void page_json_index(const struct serve_view *v, FILE *out);
/* p: one of v's. */
void page_json_process(const struct serve_view *v, const struct serve_process *p, FILE *out);

#endif
