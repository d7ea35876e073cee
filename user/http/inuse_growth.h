/* SPDX-License-Identifier: MIT */
/*
 * inuse_growth.h - whether a process holds more and more, from the line of what it held (inuse_past.h). Pure.
 *
 * The time that is known is cut into quarters. The last one is compared with the first; what differs by less than the
 * line's own ups and downs, or than sampling may err, is no growth. It "grew" when it has been flat since: a program
 * that warmed up. Which stacks grow, and with what certainty, is another question: profile/growth.h.
 */
#ifndef HT_HTTP_INUSE_GROWTH_H
#define HT_HTTP_INUSE_GROWTH_H

#include <stddef.h>

#define INUSE_GROWTH_POINTS_LEAST 12 /* with fewer nothing is said */

enum inuse_trend {
	INUSE_TREND_UNKNOWN,
	INUSE_TREND_GROWS,
	INUSE_TREND_GREW,
	INUSE_TREND_STEADY,
	INUSE_TREND_SHRINKS,
};

struct inuse_growth {
	enum inuse_trend trend;
	double bytes_per_min; /* with a trend that is known */
	double minutes; /* between the first and the last known value */
};

/* values: step_s apart, the oldest first, NAN where not known. error_bytes: standard error of what is in use now. */
void inuse_growth(const float *values, size_t cnt, double step_s, double error_bytes,
		  struct inuse_growth *ret);
/* "grows", "grew", "steady", "shrinks"; unknown: NULL. */
const char *inuse_trend_text(enum inuse_trend trend);

#endif
