/* SPDX-License-Identifier: MIT */
/*
 * series_table.h - which scopes and thread pools of a process are time series of their own, and cumulative values
 * that never go back. Pure.
 *
 * Each pair of scope and thread pool would be a series for ever, so their number is bounded: the first pairs of a
 * process, of those that come together the largest, have one until the process ends. All later ones together are
 * "(other)", however large they become, and the sum over the series of a process is the process. So a series is always
 * about the same, and its counter never goes back: a process that executes another program begins at 0 by itself, its
 * series go on from where they were.
 *
 * A process that is not updated between two sweeps is forgotten, so that its pid can be used again.
 */
#ifndef HT_METRICS_SERIES_TABLE_H
#define HT_METRICS_SERIES_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/estimate.h"

struct series_table;

/* A process. Another start means another process, another generation another program in it. */
struct series_process {
	pid_t pid;
	uint64_t start;
	uint32_t generation;
};

/* What a pair holds, and what this program has allocated under it, which never decreases. */
struct series_cell {
	const char *scope, *pool;
	struct estimate inuse;
	double alloc_bytes, alloc_objects;
};

/* At most max_cnt series, and the rest, for each process. 0: only the sums of processes. */
int series_table_new(size_t max_cnt, struct series_table **ret);
void series_table_free(struct series_table *b);

/*
 * Update what a process holds; no two cells may have the same pair. *ret_total has the sum as a cell without names;
 * *ret points to *ret_cnt cells, the largest first and the rest last. They and their names belong to b, until the
 * next update.
 */
int series_table_update(struct series_table *b, const struct series_process *process,
			const struct series_cell *cells, size_t cnt, struct series_cell *ret_total,
			const struct series_cell **ret, size_t *ret_cnt);
/* Call after updating all processes: forget those that were not updated. */
void series_table_sweep(struct series_table *b);

#endif
