/* SPDX-License-Identifier: MIT */
/*
 * inuse_past.h - what each process held, and its resident memory: every ten seconds of the last hour, and the maximum
 * of each five minutes of the last day. Pure, and bounded: INUSE_PAST_PROCESS_BYTES for each process, at most
 * INUSE_PAST_PROCESSES_CAP of them.
 */
#ifndef HT_HTTP_INUSE_PAST_H
#define HT_HTTP_INUSE_PAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define INUSE_PAST_STEP_S 10
#define INUSE_PAST_HOUR_CNT 360
#define INUSE_PAST_DAY_STEPS 30 /* steps in one point of the day */
#define INUSE_PAST_DAY_CNT 288
#define INUSE_PAST_PROCESSES_CAP 4096 /* as many as are followed */
#define INUSE_PAST_PROCESS_BYTES \
	(4 * INUSE_PAST_LINE_CNT * (INUSE_PAST_HOUR_CNT + INUSE_PAST_DAY_CNT) + 32)

enum inuse_past_line { INUSE_PAST_INUSE, INUSE_PAST_RESIDENT, INUSE_PAST_LINE_CNT };

struct inuse_past;

int inuse_past_new(struct inuse_past **ret);
void inuse_past_free(struct inuse_past *p);

/* Begin a moment; time_ns never goes back. false: too soon after the previous moment, none has begun. */
bool inuse_past_begin(struct inuse_past *p, uint64_t time_ns);
/*
 * Add what a process holds. since_ns: when following it began; another since_ns (the pid was reused, or is followed
 * again) begins a new past, an exec does not. bytes: by line; NAN: not known. 0, -ENOMEM; -ENOSPC: there are too many
 * processes, and this one has no past.
 */
int inuse_past_add(struct inuse_past *p, pid_t pid, uint64_t since_ns,
		   const double bytes[static INUSE_PAST_LINE_CNT]);
/* Is there no room for one more? */
bool inuse_past_is_full(const struct inuse_past *p);
/* End the moment; processes that were not added are forgotten. */
void inuse_past_end(struct inuse_past *p);

/* The time of the last moment; 0: there was none. */
uint64_t inuse_past_time_ns(const struct inuse_past *p);
/* The points of a process, the oldest first, at the intervals above, NAN where not known; the last one is of the
 * last moment. Return their number; 0: it has no past. */
size_t inuse_past_hour(const struct inuse_past *p, pid_t pid, enum inuse_past_line line,
		       float ret[static INUSE_PAST_HOUR_CNT]);
size_t inuse_past_day(const struct inuse_past *p, pid_t pid, enum inuse_past_line line,
		      float ret[static INUSE_PAST_DAY_CNT]);

/*
 * Whether a process holds more and more, from the line of what it held. Pure.
 *
 * The time that is known is cut into quarters. The last one is compared with the first; what differs by less than the
 * line's own ups and downs, or than sampling may err, is no growth. It "grew" when it has been flat since: a program
 * that warmed up. Which stacks grow, and with what certainty, is another question: profile/growth.h.
 */

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
