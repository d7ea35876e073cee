/* SPDX-License-Identifier: MIT */
/*
 * report_losses.h - what a profile's comments say was lost.
 *
 * Losses are the counters of the ledger (comments "ledger: NAME N (meaning)") that are not 0, but for those that
 * another line says. A counter that is not known here counts as a loss.
 */
#ifndef HT_REPORT_LOSSES_H
#define HT_REPORT_LOSSES_H

#include <stdbool.h>
#include <stddef.h>

struct profile;

#define REPORT_LEDGER "ledger: " /* begins such a comment */

struct report_loss {
	unsigned long long cnt;
	const char *text; /* in the profile: "cut_no_row 3 (stacks cut: no unwind row)" */
	const char *meaning; /* the end of it: "stacks cut: no unwind row)" */
};

/* How many kinds there are, and the largest of them. */
size_t report_find_losses(const struct profile *p, struct report_loss *ret_largest);
bool report_has_losses(const struct profile *p);
/* A counter by its name: in-use is unknown, the program paused, or the same in samples. */
bool report_loss_is_said_elsewhere(const char *name);

#endif
