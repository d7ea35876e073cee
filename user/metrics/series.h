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
#ifndef HT_METRICS_SERIES_H
#define HT_METRICS_SERIES_H

#include <stddef.h>

#include "base/vec.h"

#define SERIES_NONE "(none)" /* a row without a scope, or without a thread */
#define SERIES_OTHER "(other)"

struct profile;

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

#endif
