/* SPDX-License-Identifier: MIT */
/*
 * import_priv.h - the common parts of the text forms of heap profiles: lines of numbers, stacks of addresses, a symbol
 * section before and the process's mappings at the end.
 *
 * The parts of import.c: import_lines.c has them.
 */
#ifndef HT_PROFILE_IMPORT_PRIV_H
#define HT_PROFILE_IMPORT_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hmap.h"
#include "base/vec.h"
#include "profile/pprof.h"

struct err;
struct profile_label;

/* The unread rest of a line, without its end. */
struct import_line {
	const char *pos, *end;
};

struct importer {
	struct profile *p;
	struct err *why;
	const char *start, *pos, *end; /* of the text */
	const char *line_pos;
	uint64_t line; /* number of the line that was read last, from 1 */
	struct hmap location_by_address;
	struct hmap name_by_address; /* of the symbol section: id of "caller--inlined" in p */
	struct hmap function_by_name;
	VEC(uint32_t) locs; /* the current stack, leaf first */
	bool has_alloc; /* the file has totals of what was allocated */
};

/* inuse: in use now; alloc: since the start. */
struct import_counts {
	uint64_t inuse_objects, inuse_bytes, alloc_objects, alloc_bytes;
};

/* Fill *why with a message and the current line; return -EBADMSG. */
int import_fail(struct importer *im, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Next line that is not blank: 1; 0: the end; -EBADMSG. */
int import_next_line(struct importer *im, struct import_line *ret);

/* Each takes blanks and then the thing in its name from the front of the line. false: nothing was taken. */
bool import_take(struct import_line *l, const char *text);
bool import_take_number(struct import_line *l, uint64_t *ret);
bool import_take_hex(struct import_line *l, uint64_t *ret); /* with or without 0x */
bool import_take_counts(struct import_line *l, struct import_counts *ret); /* "1: 2 [3: 4]" */
/* Only blanks are left. */
bool import_at_end(struct import_line *l);

/* Read the rest of the line, return addresses from the leaf on, into im->locs. */
int import_stack(struct importer *im, struct import_line *l);
/* Set the sample types: all four, or only inuse_* if there are no alloc_*. */
int import_set_types(struct importer *im, uint64_t rate_bytes);
/*
 * Weight sampled counts: they stand for bytes / (1 - exp(-mean / rate)), where mean is bytes / objects; the divisor is
 * the share of allocations of that size that are sampled. jemalloc since 5.3 prints numbers from which this formula
 * makes its unbiased sums, whatever sizes meet in a stack. A rate up to 1 changes nothing.
 */
void import_weigh(double objects, double bytes, uint64_t rate_bytes, double *ret_objects,
		  double *ret_bytes);
/* Add a sample. Values as in enum profile_value; alloc_* are left out if the file has none. */
int import_sample(struct importer *im, const double *values, const struct profile_label *labels,
		  size_t label_cnt);
/* After "MAPPED_LIBRARIES:": read the rest of the file, set the mapping of each location. */
int import_mappings(struct importer *im);

#endif
