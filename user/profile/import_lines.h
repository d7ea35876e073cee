/* SPDX-License-Identifier: MIT */
/*
 * import_lines.h - what the text forms of heap profiles have in common: lines of numbers, stacks
 * of addresses, a symbol section before and the process's mappings at the end.
 *
 * Internal to the import*.c files.
 */
#ifndef HT_PROFILE_IMPORT_LINES_H
#define HT_PROFILE_IMPORT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hmap.h"
#include "base/vec.h"
#include "profile/pprof.h"

struct err;
struct profile_label;

/* What is left of a line, without its end. */
struct import_line {
	const char *pos, *end;
};

struct importer {
	struct profile *p;
	struct err *why;
	const char *start, *pos, *end; /* of the text */
	const char *line_pos;
	uint64_t line; /* the one that was read last, from 1 */
	struct hmap location_by_address;
	struct hmap name_by_address; /* of the symbol section: id of "caller--inlined" in p */
	struct hmap function_by_name;
	VEC(uint32_t) locs; /* the stack at hand, leaf first */
	bool has_alloc; /* the file says what was allocated in total */
};

/* inuse: now; alloc: since the start. */
struct import_counts {
	uint64_t inuse_objects, inuse_bytes, alloc_objects, alloc_bytes;
};

/* Fill *why with the line at hand; returns -EBADMSG. */
int import_fail(struct importer *im, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* 1: a line that is not blank; 0: the end; -EBADMSG. */
int import_next_line(struct importer *im, struct import_line *ret);

/* Each takes what it is named after from the line, with blanks before it, or takes nothing. */
bool import_take(struct import_line *l, const char *text);
bool import_take_number(struct import_line *l, uint64_t *ret);
bool import_take_hex(struct import_line *l, uint64_t *ret); /* with or without 0x */
bool import_take_counts(struct import_line *l, struct import_counts *ret); /* "1: 2 [3: 4]" */
/* Nothing but blanks is left. */
bool import_at_end(struct import_line *l);

/* The rest of the line, return addresses from the leaf: into im->locs. */
int import_stack(struct importer *im, struct import_line *l);
/* Set the sample types: all four, or without alloc_* two. */
int import_set_types(struct importer *im, uint64_t rate_bytes);
/*
 * What was sampled stands for bytes / (1 - exp(-mean / rate)), mean being bytes / objects: the
 * share of allocations of that size that are sampled. jemalloc since 5.3 prints numbers of which
 * this formula makes its unbiased sums, whatever sizes meet in a stack. Up to a rate of 1 there is
 * nothing to do.
 */
void import_weigh(double objects, double bytes, uint64_t rate_bytes, double *ret_objects,
		  double *ret_bytes);
/* Values as in enum profile_value; alloc_* are left out when the file has none. */
int import_sample(struct importer *im, const double *values, const struct profile_label *labels,
		  size_t label_cnt);
/* "--- symbol" was read: the rest of the section. */
int import_symbols(struct importer *im);
/* In the end: its names for the locations. */
int import_name_locations(struct importer *im);
/* "MAPPED_LIBRARIES:" was read: the rest of the file, and where each location is. */
int import_mappings(struct importer *im);

/* After the first line, "heap_v2/RATE": jemalloc. */
int import_jeheap(struct importer *im, struct import_line *head);
/* After the first line, "heap profile: ...": gperftools. */
int import_gperf(struct importer *im, struct import_line *head);

#endif
