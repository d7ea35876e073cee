/* SPDX-License-Identifier: MIT */
/* report_own.h - the user's own frames of a stack. Internal to the report_*.c files. */
#ifndef HT_REPORT_OWN_H
#define HT_REPORT_OWN_H

#include <stdbool.h>

#include "report/report_rows.h"

/* The place that a stack is charged to. */
struct report_place {
	struct report_frame frame;
	struct report_frame_pos behind; /* position of its first caller */
	const char *hint; /* what it was doing, "vector grows", or NULL */
};

/*
 * Find the first own frame from the leaf: by --own, else by the tables. In a stack without one: the first frame with a
 * name that is in no system library, else the first with a name, else the leaf. false: no frames.
 */
bool report_find_place(const struct report *r, const struct profile_sample *s,
		       struct report_place *ret);
/* Is this frame the user's own, by --own or by the tables? */
bool report_is_own(const struct report *r, const struct profile_sample *s,
		   const struct report_frame *f);
/* Find the next own frame from pos on, by the tables alone; false: none. */
bool report_next_own(const struct report *r, const struct profile_sample *s,
		     struct report_frame_pos *pos, struct report_frame *ret);

#endif
