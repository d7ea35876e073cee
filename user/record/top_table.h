/* SPDX-License-Identifier: MIT */
/*
 * top_table.h - the data of heaptap top at one moment: the process as one row, or its stacks, functions, scopes or
 * threads. Pure.
 */
#ifndef HT_RECORD_TOP_TABLE_H
#define HT_RECORD_TOP_TABLE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct profile;
struct report_list;
struct strset;

enum top_what { TOP_PROCESSES, TOP_STACKS, TOP_FUNCTIONS, TOP_SCOPES, TOP_THREADS };
extern const char *const top_what_names[]; /* "process", "stack", as in --by of a report */

/* NAN: not known, or a table without such a column. */
struct top_row {
	const char *key; /* tells rows apart, and finds a row in the next table */
	const char *name;
	const char *tail; /* callers, or the executable */
	const char *error; /* of held_bytes: "+-8%" */
	size_t parent; /* index, less than that of the row; SIZE_MAX: none */
	uint32_t depth;
	pid_t pid; /* of a process */
	bool is_weak; /* too few samples */
	double held_bytes, held_variance, blocks, alloc_bytes;
	double cost_share, resident_bytes;
	/* Filled by top_rates.h from here on. */
	double growth_per_min, alloc_per_s;
	bool growth_is_weak; /* it may be chance */
};

/* Id that also differs from those of rows in other views. */
uint64_t top_row_id(enum top_what what, const char *key);

#define TOP_ROW_NONE                              \
	((struct top_row){ .key = "",             \
			   .name = "",            \
			   .tail = "",            \
			   .error = "",           \
			   .parent = SIZE_MAX,    \
			   .held_bytes = NAN,     \
			   .held_variance = NAN,  \
			   .blocks = NAN,         \
			   .alloc_bytes = NAN,    \
			   .cost_share = NAN,     \
			   .resident_bytes = NAN, \
			   .growth_per_min = NAN, \
			   .alloc_per_s = NAN })

#define TOP_TEXT_BUF 512
struct top_table {
	enum top_what what;
	VEC(struct top_row) rows;
	struct top_row total;
	char title[TOP_TEXT_BUF]; /* "server (PID 12)" */
	char about[TOP_TEXT_BUF]; /* ", 1m 20s, one sample per 64.0 KiB" */
	char cost[TOP_TEXT_BUF]; /* the cost, and what is given up for it */
	char losses[TOP_TEXT_BUF];
	char resident[TOP_TEXT_BUF]; /* resident memory by row; "": not known */
	struct strset *texts;
	struct report_list *list; /* of a process */
};

/* Rows of p, which must outlive the table. TOP_PROCESSES: one row, the process of p. 0, -ENOMEM or -EINVAL. */
int top_table_of_profile(const struct profile *p, enum top_what what, struct top_table **ret);
void top_table_free(struct top_table *t);

#endif
