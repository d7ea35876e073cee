/* SPDX-License-Identifier: MIT */
/* cost_view.h - what the probes of those that run cost, at most, and whether all their frees are watched. */
#ifndef HT_RECORD_COST_VIEW_H
#define HT_RECORD_COST_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "budget/budget.h"

struct governor;
struct tracker;

struct cost_view {
	pid_t pid; /* whose cost it is */
	struct budget_price now;
	double share_overall;
	bool is_of_one_cpu; /* the limit that is in force for it */
	bool has_inuse, is_out;
	size_t cnt;
};

/* is_one: all have one budget. */
struct cost_view cost_view_read(const struct tracker *t, const struct governor *g, bool is_one);

#endif
