/* SPDX-License-Identifier: MIT */
/*
 * governor_tally.h - what the budgets of several processes say of a recording of them all.
 */
#ifndef HT_BUDGET_GOVERNOR_TALLY_H
#define HT_BUDGET_GOVERNOR_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/recording.h"

struct governor_view;

struct governor_tally { /* zeros: nobody yet */
	size_t cnt, unknown_cnt; /* of these in-use is not known */
	double cost_ns, cpu_ns;
	bool is_cost_unknown;
	double overhead_one_cpu; /* of the last one */
	double full_share, full_one_cpu; /* the largest share, and of whom that is; 0: of nobody */
	struct recording_limit limit; /* each one's, if they are not of one kind both */
	uint64_t inuse_ns; /* the latest; 0: of all of them everything */
	uint64_t watched_ns; /* the least */
	bool was_not_always_watched;
};

void governor_tally_add(struct governor_tally *t, const struct governor_view *v);
/* See governor_fill_recording(). */
void governor_tally_fill(const struct governor_tally *t, int64_t epoch_off_ns, struct recording *r);

#endif
