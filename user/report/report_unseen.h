/* SPDX-License-Identifier: MIT */
/* report_unseen.h - what a profile says of memory that it cannot have, and whether that matters. */
#ifndef HEAPTAP_REPORT_UNSEEN_H
#define HEAPTAP_REPORT_UNSEEN_H

#include <stdbool.h>
#include <stddef.h>

struct profile;
struct report;

/* The next sentence about memory that is not seen; *at: 0 at first. NULL: none. */
const char *report_next_unseen(const struct profile *p, size_t *at);
/* Did the process grow by something of which less than half is in the report's total? */
bool report_is_mostly_unseen(const struct report *r);
/* Is the total of what is in use certainly not all? So it is when the profile names memory that is not seen, and either
 * was that lost, or the process, which ran before, grew by twice of what was ever seen in use. */
bool report_is_least(const struct report *r);

#endif
