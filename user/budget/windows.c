/* SPDX-License-Identifier: MIT */
/*
 * windows.c - see windows.h.
 *
 * Time is cut into periods. Each has one window in which the probes are in; it begins at a moment drawn
 * uniformly from the period, independent of all others (it may reach into the next period). A moment is
 * inside a window with the same chance for all of them:
 *   d = length of the window / length of the period
 * so an allocation that is sampled with p stands for 1 / (p d) allocations, and sums over windows are
 * unbiased whatever the program does when, also if it does it periodically (Horvitz and Thompson again:
 * see model/estimate.c). One window per period, not a coin per moment, because the overhead must not
 * swing: any few periods hold the same share of windows. The length is what windows really turned
 * out to have: a busy machine closes them late.
 *
 * That would be all if probes had no effect. They do, where windows are needed: while they are in, a
 * program that does nothing but allocate gets on many times slower, so less happens inside a window
 * than outside in the same time. What it gets done is taken to go with the CPU time of its own:
 *   slowdown = (own CPU time per time outside) / (own CPU time per time inside)
 * where own is without the estimated cost of the probes. It is 1 for a program that waits for its
 * work (it then takes more CPU time for the same), and 1/(1-s) for one that never waits, with s the share
 * of the probes while they are in; it is never taken to be more than that, because chance decides
 * which part of a program's work falls into windows. A sample stands for the window itself and for
 * the time outside: it counts (1 + slowdown (1/d - 1)) / p times.
 *
 * The bound of this: own time inside is a small difference of two large numbers when s is near 1, so
 * WINDOWS_SLOWDOWN_BOUND ends it; from there on the sums are a lower bound, and the profile says so. The variance
 * of a row is larger than its samples alone would say: samples of a window come together.
 *
 * In-use is not estimated from windows at all: most blocks are freed while nobody looks. What was
 * outstanding is dropped when the free probes go out, and in-use begins anew when they come back.
 */
#include "budget/windows.h"

#include <math.h>

#include "base/clock.h"

#define WINDOW_NS (10 * NS_PER_MS)
#define PERIOD_MIN_NS (100 * NS_PER_MS)
#define KEEP 0.9 /* of the sums, per window */
#define LENGTH_KEEP 0.8
#define LENGTH_MAX 100

uint64_t windows_period_ns(double duty)
{
	double period = WINDOW_NS / duty;

	return period > PERIOD_MIN_NS ? (uint64_t)period : PERIOD_MIN_NS;
}

uint64_t windows_length_ns(double duty)
{
	return (uint64_t)((double)windows_period_ns(duty) * duty);
}

/* splitmix64 (Steele, Lea and Flood 2014): uniform in [0, 1). */
static double draw(struct windows *w)
{
	uint64_t z = w->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static void plan(struct windows *w, uint64_t begin_ns, uint64_t more_ns)
{
	w->begin_ns = begin_ns;
	w->period_ns = windows_period_ns(w->duty) + more_ns;
	w->window_ns = windows_length_ns(w->duty);
	w->open_ns = begin_ns + (uint64_t)(draw(w) * (double)w->period_ns);
}

void windows_start(struct windows *w, uint64_t now_ns, double duty, uint64_t seed,
		   const struct windows_stretch *before)
{
	*w = (struct windows){ .random = seed, .duty = duty, .length = 1, .in = *before };
	plan(w, now_ns, 0);
}

void windows_set_duty(struct windows *w, double duty)
{
	w->duty = duty;
}

static double slowdown(const struct windows_stretch *in, const struct windows_stretch *out)
{
	double inside, outside, most;

	if (!in->wall_ns || !out->wall_ns || in->cpu_ns <= 0)
		return 1;
	/* More cannot come from the probes: it is the program that does less at times. */
	most = in->own_ns * WINDOWS_SLOWDOWN_BOUND > in->cpu_ns ? in->cpu_ns / in->own_ns :
								  WINDOWS_SLOWDOWN_BOUND;
	inside = in->own_ns / (double)in->wall_ns;
	outside = out->own_ns / (double)out->wall_ns;
	if (inside * most <= outside)
		return most;
	return fmax(outside / inside, 1);
}

double windows_slowdown(const struct windows *w)
{
	return slowdown(&w->in, &w->out);
}

double windows_scale(const struct windows *w, const struct windows_stretch *out)
{
	double duty = (double)w->window_ns * w->length / (double)w->period_ns;
	/* Before the first window: what is known is what was before it. */
	double slow = w->cnt ? windows_slowdown(w) : slowdown(&w->in, out);

	return slow * (1 / fmin(duty, 1) - 1) + 1;
}

static void stretch_add(struct windows_stretch *sum, const struct windows_stretch *more)
{
	sum->wall_ns = (uint64_t)((double)sum->wall_ns * KEEP) + more->wall_ns;
	sum->cpu_ns = sum->cpu_ns * KEEP + more->cpu_ns;
	sum->own_ns = sum->own_ns * KEEP + more->own_ns;
}

void windows_next(struct windows *w, uint64_t now_ns, const struct windows_stretch *in,
		  const struct windows_stretch *out)
{
	double length = (double)in->wall_ns / (double)w->window_ns;
	double keep = fmin(LENGTH_KEEP, w->cnt / (w->cnt + 1.0)); /* at first a plain mean */
	uint64_t end_ns = w->begin_ns + w->period_ns;

	if (!w->cnt)
		w->in = (struct windows_stretch){ 0 };
	stretch_add(&w->in, in);
	stretch_add(&w->out, out);
	w->length = w->length * keep + fmin(length, LENGTH_MAX) * (1 - keep);
	w->cnt++;
	/* Time that was slept through belongs to the next period, whose window stands for it too. */
	plan(w, end_ns, now_ns > end_ns + w->window_ns ? now_ns - end_ns - w->window_ns : 0);
	if (w->open_ns < now_ns)
		w->open_ns = now_ns;
}
