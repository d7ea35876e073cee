/* SPDX-License-Identifier: MIT */
/*
 * windows.h - when probes are in for a part of the time, and how much what is seen then counts.
 *
 * Pure: times and counts in, times and weights out. windows.c explains the estimator.
 */
#ifndef HT_BUDGET_WINDOWS_H
#define HT_BUDGET_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

/* What went on in a stretch of time. */
struct windows_stretch {
	double wall_ns;
	double cpu_ns; /* of the process */
	double cpu_noise_ns; /* standard error of that, from how it is read */
	double cost_ns; /* of that: what the probes took, as calibrated */
	double alloc_cnt; /* hits of the probes on allocations */
};
/* Outside it is of time without any probes; but alloc_cnt is what was hit while they came and went. */

/* Which probes are in. */
enum windows_kind {
	WINDOWS_LIGHT, /* on allocations */
	WINDOWS_HEAVY, /* on frees as well, only to see what that does to the program */
};
#define WINDOWS_KIND_CNT 2

/* Of the windows of one kind, with forgetting. */
struct windows_sums {
	double cnt;
	struct windows_stretch all;
	double alloc_sq, alloc_cpu, cpu_sq, noise_sq; /* of each, summed up; cpu and noise in ns */
	/* What they saw is to stand for seen + slowdown * unseen allocations. */
	double seen, unseen;
};

/* low <= value <= high. */
struct windows_slowdown {
	double low, value, high;
};

struct windows {
	uint64_t random; /* state */
	double duty; /* from the next period on */
	uint64_t begin_ns, period_ns; /* of the present period */
	uint64_t open_ns; /* of its window, which is window_ns long */
	uint64_t window_ns;
	enum windows_kind kind; /* of its window */
	double length; /* of windows as they turn out, relative to what was planned */
	struct windows_sums in[WINDOWS_KIND_CNT];
	struct windows_stretch out; /* a sum with forgetting */
	double given; /* allocations that all windows were made to stand for, with forgetting */
	double scale; /* of the open window */
	uint32_t cnt;
	/* Of each window per ns of its period, summed up: for windows_spread() */
	double stood_for, stood_last, change_sq;
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
/* The window is about to open: its kind is w->kind, each sample of it counts that many times. out: since the
 * last one ended. */
double windows_open(struct windows *w, const struct windows_stretch *out);
/* It cannot be had: this period has none, and the next one is planned. */
void windows_put_off(struct windows *w, uint64_t now_ns);
/* The window is over: what was in it, and what was before it. The next period is planned. */
void windows_close(struct windows *w, uint64_t now_ns, const struct windows_stretch *in,
		   const struct windows_stretch *out);
/* How many times slower the process gets on in windows of a kind, as far as it is known. */
struct windows_slowdown windows_slowdown(const struct windows *w, enum windows_kind kind);
/* The most that it is taken to be: what is scaled with it is a lower bound. */
#define WINDOWS_SLOWDOWN_BOUND 20
/* Where high / low is above this the sums are called uncertain. */
#define WINDOWS_SURE 1.5
/* Relative standard error of all that was allocated, from how windows differ; infinite below two. */
double windows_spread(const struct windows *w);

#endif
