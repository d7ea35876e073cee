/* SPDX-License-Identifier: MIT */
/*
 * report_list.h - the rows of a profile one by one, with the names and error bars that a report
 * prints, for callers that draw them.
 */
#ifndef HT_REPORT_LIST_H
#define HT_REPORT_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/options.h"

struct profile;
struct report_list;

struct report_list_row {
	const char *key; /* unique among the rows; identifies the row in the next profile, too */
	const char *name; /* for a stack: the place it is charged to, "Store::put store.cc:12" */
	const char *callers; /* "< f a.c:1 < main a.c:9"; "": not known */
	uint32_t depth; /* by scope: the parent is above it, one less deep */
	double held_bytes, blocks; /* NAN: not known */
	double held_variance; /* NAN: not known */
	double alloc_bytes; /* NAN: not known */
	const char *error; /* 95 % error of held_bytes: "+-8%", "exact"; "": not known */
	bool is_weak; /* too few samples to say much */
};

/*
 * opts->by: stack (stacks of one place are one row), function, thread or scope. p must outlive the
 * list; it stays the caller's. 0, -ENOMEM or -EINVAL (a profile without values).
 */
int report_list_new(const struct profile *p, const struct report_options *opts,
		    struct report_list **ret);
void report_list_free(struct report_list *l);
size_t report_list_cnt(const struct report_list *l);
const struct report_list_row *report_list_at(const struct report_list *l, size_t i);
/* Sum of all rows; its texts are "" except error. */
const struct report_list_row *report_list_total(const struct report_list *l);
/* By stack: write the n-th frame from the leaf of the row's largest stack to buf; NULL: no more frames. */
#define REPORT_LIST_FRAME_BUF 640
const char *report_list_frame(const struct report_list *l, size_t i, size_t n,
			      char buf[REPORT_LIST_FRAME_BUF]);

#endif
