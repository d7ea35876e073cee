/* SPDX-License-Identifier: MIT */
/*
 * window_run.h - runs the windows of a budget unit: opens and ends them, and tells the estimator
 * (windows.h) and the controller (budget.h) what was in them and between them.
 *
 * Internal to governor.c, which says when the step to windows is taken and when it is left.
 */
#ifndef HT_BUDGET_WINDOW_RUN_H
#define HT_BUDGET_WINDOW_RUN_H

#include <stdint.h>

#include "budget/windows.h"

struct budget_unit;
struct engine;
struct window_run;

/* Makes the sampling tables that windows need: those behind number BUDGET_COARSE_CAP. */
int window_run_set_rates(struct engine *e, uint64_t rate_bytes);

/* The unit must outlive it. -ENOMEM. */
int window_run_new(struct budget_unit *u, struct window_run **ret);
/* As window_run_stop(). NULL is fine. */
void window_run_free(struct window_run *r);

/* The step is taken, maybe once again: frees are not seen any more, and the first period begins. seed: for
 * the moments at which windows open. */
int window_run_start(struct window_run *r, uint32_t seed);
/* An open window ends at once and does not count. Waits for probes that are on their way out. */
void window_run_stop(struct window_run *r);

/* Do what is due; call at least at window_run_due_ns(). -ENOMEM; a process that has ended is no error. */
int window_run_work(struct window_run *r);
uint64_t window_run_due_ns(const struct window_run *r);

struct window_run_view {
	uint64_t rate_bytes; /* in windows */
	uint32_t window_cnt; /* so far */
	struct windows_slowdown slowdown;
	double spread; /* relative standard error of what was allocated: of windows and samples */
};
void window_run_view(const struct window_run *r, struct window_run_view *ret);

#endif
