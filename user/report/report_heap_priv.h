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
 * report_heap.c: what the text forms of heap profiles have in common: names in front, stacks of addresses, mappings
 * behind. report_heap.c says how the addresses are made up.
 */

struct heap_text {
	const struct report *r;
	FILE *out;
	uint64_t *address; /* by location; 0: in no stack */
	struct hmap used; /* addresses and those + 1 */
};

/* 0 or -ENOMEM; release it in any case. */
int report_heap_open(const struct report *r, FILE *out, struct heap_text *h);
void report_heap_release(struct heap_text *h);

/* The section "--- symbol"; makes up the addresses. */
int report_heap_put_symbols(struct heap_text *h);
/* The addresses of a row's stack, a blank before each, and the end of the line. */
void report_heap_put_stack(const struct heap_text *h, const struct report_row *row);
void report_heap_put_mappings(const struct heap_text *h);
/* Controls are blanks. */
void report_heap_put_text(const char *text, FILE *out);

#endif
