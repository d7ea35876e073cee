/* SPDX-License-Identifier: MIT */
/*
 * series.h - a process's profile as the series of a backend. Pure.
 *
 * Parca knows only labels of a whole profile and drops those of rows. So a process becomes one profile for each
 * pair of scope and thread pool, and the sum over them is the process.
 *
 * Pyroscope makes series of its own from the labels of rows. So rows keep their labels, except those whose values
 * have no bound: the thread becomes its pool, the task is left out.
 *
 * Both are bounded, because the backend keeps each combination as a series for ever: the combinations with the most
 * bytes in use (then the most allocated) stay, all others together become scope="(other)". This choice is made anew
 * for each profile. Rows that do not differ any more become one; error bars and notes, which no backend reads, are
 * left out.
 */
#ifndef HT_HTTP_SERIES_H
#define HT_HTTP_SERIES_H

#include "base/std.h"
#include "base/vec.h"
#include "profile/estimate.h"

struct profile;
struct series_table;

#define SERIES_NONE "(none)" /* a row without a scope, or without a thread */
#define SERIES_OTHER "(other)"

struct series {
	struct profile *profile; /* its rows have no labels */
	char *scope, *pool;
};

struct series_set {
	VEC(struct series) list; /* the largest first, the rest last */
	size_t folded_cnt; /* pairs that were merged into the rest */
};

/* Make at most max_cnt (> 0) profiles. Release ret even if it has no series. */
int series_split(const struct profile *p, size_t max_cnt, struct series_set *ret);
void series_release(struct series_set *set);

/*
 * Make one profile whose rows have at most max_cnt (> 0) different sets of labels. Names of labels are made valid
 * ([a-zA-Z_][a-zA-Z0-9_]*); a name that begins with "__" or is in `taken` (the labels of the whole profile, ending
 * with NULL) gets "exported_" before it. Every location has a line.
 */
int series_rows(const struct profile *p, size_t max_cnt, const char *const *taken,
		struct profile **ret, size_t *ret_folded_cnt);

/*
 * series_table.c: which scopes and thread pools of a process are time series of their own, and cumulative values
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
