/* SPDX-License-Identifier: MIT */
/*
 * report_html_priv.h - internal parts of report_html.c: the stacks of a report as a tree from the root down (report_tree.c),
 * and its time line (report_html_moments.c).
 *
 * Frames of one function, module and file below the same parent are one node, whatever their lines. Node 0 is the root,
 * without a function. A child comes after its parent.
 */
#ifndef HT_REPORT_REPORT_HTML_PRIV_H
#define HT_REPORT_REPORT_HTML_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/strset.h"
#include "base/vec.h"
#include "report/report_rows.h"

struct report_tree_function {
	int64_t name, module, file; /* in names; "": none */
	bool is_own; /* the user's own: see report_places.h */
};

struct report_tree_node {
	uint32_t parent, function; /* HT_NO_INDEX for the root */
};

struct report_tree {
	struct strset *names;
	VEC(struct report_tree_function) functions;
	VEC(struct report_tree_node) nodes;
	VEC(uint32_t) leaf; /* node of each of report.chosen's samples */
};

/* 0 or -ENOMEM. */
int report_tree_new(const struct report *r, struct report_tree **ret);
void report_tree_free(struct report_tree *t);

/* What a sample held at the end, whatever the moment of the report. */
struct estimate report_end_of(const struct report *r, uint32_t sample);

/* The time line; NULL: what was in use at other moments is unknown. 0 or -ENOMEM. */
struct json;
struct report_time_line;
int report_time_line_new(const struct report *r, struct report_time_line **ret);
void report_time_line_free(struct report_time_line *l);
/* Nothing of NULL. */
void report_time_line_put(const struct report_time_line *l, FILE *out);
void report_time_line_put_json(const struct report_time_line *l, struct json *j);

#endif
