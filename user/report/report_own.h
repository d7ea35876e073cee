/* SPDX-License-Identifier: MIT */
/* report_own.h - the user's own frames of a stack. Internal to the report_*.c files. */
#ifndef HT_REPORT_OWN_H
#define HT_REPORT_OWN_H

#include <stdbool.h>

#include "report/report_rows.h"

/* Whom a stack is charged to. */
struct report_place {
	struct report_frame frame;
	struct report_frame_pos behind; /* where its callers begin */
	const char *hint; /* what it was doing, "vector grows", or NULL */
};

/*
 * The first frame from the leaf that is the user's own; of a stack without one, the first that has
 * a name at all, else the leaf. false: there are no frames.
 */
bool report_find_place(const struct report *r, const struct profile_sample *s,
		       struct report_place *ret);
/* Is a frame of a stack the user's own, by --own or by the tables? */
bool report_is_own(const struct report *r, const struct profile_sample *s,
		   const struct report_frame *f);
/* The next own frame from pos on; false: there is none. */
bool report_next_own(const struct report *r, const struct profile_sample *s,
		     struct report_frame_pos *pos, struct report_frame *ret);

#endif
