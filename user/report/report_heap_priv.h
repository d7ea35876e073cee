/* SPDX-License-Identifier: MIT */
/* report_heap_priv.h - what report_heap.c and report_heap_v2.c share. */
#ifndef HT_REPORT_REPORT_HEAP_PRIV_H
#define HT_REPORT_REPORT_HEAP_PRIV_H

#include <stdint.h>
#include <stdio.h>

#include "base/hmap.h"

struct report;
struct report_row;

/*
 * report_heap.c: common parts of the text forms of heap profiles: names first, then stacks of
 * addresses, then mappings. Its essay says how addresses are made up.
 */

struct heap_text {
	const struct report *r;
	FILE *out;
	uint64_t *address; /* by location; 0: in no stack */
	struct hmap used; /* used addresses, and these + 1 */
};

/* 0 or -ENOMEM; release it in any case. */
int report_heap_open(const struct report *r, FILE *out, struct heap_text *h);
void report_heap_release(struct heap_text *h);

/* Write the section "--- symbol", and make up the addresses. */
int report_heap_put_symbols(struct heap_text *h);
/* Write the addresses of a row's stack, a blank before each, and end the line. */
void report_heap_put_stack(const struct heap_text *h, const struct report_row *row);
void report_heap_put_mappings(const struct heap_text *h);
/* Control characters become blanks. */
void report_heap_put_text(const char *text, FILE *out);

#endif
