/* SPDX-License-Identifier: MIT */
/*
 * report_losses.h - the losses that a profile's comments tell.
 *
 * Losses are the nonzero counters of the ledger (comments "ledger: NAME N (meaning)"), except those
 * that another line of the report tells. An unknown counter counts as a loss.
 */
#ifndef HT_REPORT_LOSSES_H
#define HT_REPORT_LOSSES_H

#include "base/std.h"

struct profile;

#define REPORT_LEDGER "ledger: " /* prefix of such comments */

struct report_loss {
	unsigned long long cnt;
	const char *text; /* in the profile: "cut_no_row 3 (stacks cut: no unwind row)" */
	const char *meaning; /* its end: "stacks cut: no unwind row)" */
};

/* Return the number of kinds of losses; *ret_largest: the largest one. */
size_t report_find_losses(const struct profile *p, struct report_loss *ret_largest);
bool report_has_losses(const struct profile *p);
/* Were there samples whose stack was not kept? Then sums are right, and no row of stacks is. */
bool report_lacks_stacks(const struct profile *p);
/* Are processes not in it, or not from their beginning? Then sums are lower bounds. counts_ended: also those that ended
 * before they were tapped. */
bool report_lacks_processes(const struct profile *p, bool counts_ended);
/* Were blocks left out because there was no room for them? Then what is in use is a lower bound, too. */
bool report_lacks_blocks(const struct profile *p);

#endif
