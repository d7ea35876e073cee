/* SPDX-License-Identifier: MIT */
/*
 * report_list.h - the rows of a profile one by one, with the names and the error bars that a report prints: for
 * who draws them himself.
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
	const char *key; /* tells it apart from the others, and finds it in the next profile */
	const char *name; /* of a stack the place that it is charged to: "Store::put store.cc:12" */
	const char *callers; /* "< f a.c:1 < main a.c:9"; "": none are known */
	uint32_t depth; /* by scope: what it lies in is above it, one less deep */
	double held_bytes, blocks; /* NAN: not known */
	double held_variance; /* NAN: not known */
	double alloc_bytes; /* NAN: not known */
	const char *error; /* of held_bytes, 95 %: "+-8%", "exact"; "": not known */
	bool is_weak; /* too few samples to say much */
};

/*
 * opts->by: stack (those of one place are one row), function, thread or scope. p stays the caller's, and must outlive
 * the list. 0, -ENOMEM or -EINVAL (a profile without values).
 */
int report_list_new(const struct profile *p, const struct report_options *opts,
		    struct report_list **ret);
void report_list_free(struct report_list *l);
size_t report_list_cnt(const struct report_list *l);
const struct report_list_row *report_list_at(const struct report_list *l, size_t i);
/* All rows together; its texts are "" but for error. */
const struct report_list_row *report_list_total(const struct report_list *l);
/* By stack: the n-th frame from the leaf of the row's largest stack, in buf; NULL: there are no more. */
#define REPORT_LIST_FRAME_BUF 640
const char *report_list_frame(const struct report_list *l, size_t i, size_t n,
			      char buf[REPORT_LIST_FRAME_BUF]);
/* A name in at most `columns`, as reports shorten it; without control characters. Returns buf. */
#define REPORT_LIST_FIT_BUF 2048
char *report_list_fit(const char *name, size_t columns, char buf[REPORT_LIST_FIT_BUF]);

#endif
