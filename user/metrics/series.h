/* SPDX-License-Identifier: MIT */
/*
 * series.h - a process's profile as the series of a backend. Pure.
 *
 * Parca knows labels of a whole profile only and drops those of rows. So a process becomes one
 * profile for each pair of scope and thread pool, and the sum over them is the process.
 *
 * Pyroscope makes series of its own from the labels of rows. So rows keep theirs, but those whose
 * values have no bound must go: the thread becomes its pool, the task is left out.
 *
 * Both have a bound, because each combination is a series that the backend keeps for ever: the
 * combinations with the most bytes in use (then the most allocated) stay, all others together
 * become scope="(other)". Which ones stay is decided for each profile anew. Rows that differ in
 * nothing any more become one; error bars and comments, which no backend reads, are left out.
 */
#ifndef HT_METRICS_SERIES_H
#define HT_METRICS_SERIES_H

#include <stddef.h>

#include "base/vec.h"
#include "metrics/series_group.h"

struct profile;

struct series {
	struct profile *profile; /* its rows have no labels */
	char *scope, *pool;
};

struct series_set {
	VEC(struct series) list; /* the largest first, the rest last */
	size_t folded_cnt; /* pairs that went into the rest */
};

/* At most max_cnt (> 0) profiles. ret is to be released also when it has no series. */
int series_split(const struct profile *p, size_t max_cnt, struct series_set *ret);
void series_release(struct series_set *set);

/*
 * One profile whose rows have at most max_cnt (> 0) different sets of labels. Names of labels are
 * made valid ones ([a-zA-Z_][a-zA-Z0-9_]*); one that begins with "__" or is in taken (ends with
 * NULL), the labels of the whole profile, gets "exported_" before it. Every location has a line.
 */
int series_rows(const struct profile *p, size_t max_cnt, const char *const *taken,
		struct profile **ret, size_t *ret_folded_cnt);

#endif
