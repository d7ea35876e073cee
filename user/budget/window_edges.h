/* SPDX-License-Identifier: MIT */
/*
 * window_edges.h - a window of processes that are probed for a while: sampling begins and ends at exact
 * moments, and what the clocks and counters say then is read.
 *
 * Both happen in the thread that takes the probes out (kernel/timed_close.h), while all probes are in.
 */
#ifndef HT_BUDGET_WINDOW_EDGES_H
#define HT_BUDGET_WINDOW_EDGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "budget/budget.h"
#include "kernel/engine.h"

struct attach_links;
struct timed_close;

struct window_edges {
	struct engine *engine;
	uint32_t hits_idx; /* where their hits are counted */
	VEC(pid_t) pids;
	struct engine_change inside, outside; /* how they are sampled */
	struct ht_hits *room; /* to read them in */
	VEC(int) clocks; /* perf events, of each thread */
	bool has_ticks; /* no such clocks: CPU time is up to date at the kernel's ticks only */
	struct budget_reading begin,
		end; /* valid when the probes are out; time_ns 0: never begun */
};

void window_edges_release(struct window_edges *we);
/*
 * Exact clocks for who is in it. The kernel's clock of a process that runs on another CPU is up to 4 ms late, of a
 * window of 10 ms. Without them (too many threads, no right to) that one is read.
 */
void window_edges_open_clocks(struct window_edges *we);
void window_edges_close_clocks(struct window_edges *we);
/* Sampling begins now and ends after length_ns, then links are closed. *we must stay where it is until *ret
 * is freed. Owns links, whatever it returns. */
int window_edges_start(struct window_edges *we, struct attach_links *links, uint64_t length_ns,
		       struct timed_close **ret);

#endif
