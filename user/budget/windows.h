/* SPDX-License-Identifier: MIT */
/*
 * windows.h - when probes are in for a part of the time, and how much what is seen then counts.
 *
 * Pure: times in, times out. windows.c explains the estimator.
 */
#ifndef HT_BUDGET_WINDOWS_H
#define HT_BUDGET_WINDOWS_H

#include <stdint.h>

/* What went on in a stretch of time. */
struct windows_stretch {
	uint64_t wall_ns;
	double cpu_ns; /* of the process */
	double own_ns; /* of that: without what probes took */
};

struct windows {
	uint64_t random; /* state */
	double duty; /* from the next period on */
	uint64_t begin_ns, period_ns; /* of the present period */
	uint64_t open_ns; /* of its window, which is window_ns long */
	uint64_t window_ns;
	double length; /* of windows as they turn out, relative to what was planned */
	struct windows_stretch in, out; /* sums with forgetting */
	uint32_t cnt;
};

/* Nominal: a period has one window. */
uint64_t windows_period_ns(double duty);
uint64_t windows_length_ns(double duty);

/*
 * The first period begins now, with the probes out. before: what the process did while all its probes
 * were in, as long as that is all there is to know (or zeros).
 */
void windows_start(struct windows *w, uint64_t now_ns, double duty, uint64_t seed,
		   const struct windows_stretch *before);
void windows_set_duty(struct windows *w, double duty);
/* Of the window to come. out: since the last one ended. */
double windows_scale(const struct windows *w, const struct windows_stretch *out);
/* The window is over: what was in it, and what was before it. The next period is planned. */
void windows_next(struct windows *w, uint64_t now_ns, const struct windows_stretch *in,
		  const struct windows_stretch *out);
/* How many times slower the process gets on while its probes are in, as far as it is known. */
double windows_slowdown(const struct windows *w);
/* The most that it is taken to be: what is scaled with it is a lower bound. */
#define WINDOWS_SLOWDOWN_BOUND 20

#endif
