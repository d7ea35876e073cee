/* SPDX-License-Identifier: MIT */
/*
 * series_group.h - groups the rows of a profile by the labels that series.h keeps: a bounded number of groups, and
 * an order in which equal rows lie side by side. Pure.
 */
#ifndef HT_METRICS_SERIES_GROUP_H
#define HT_METRICS_SERIES_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define SERIES_NONE "(none)" /* a row without a scope, or without a thread */
#define SERIES_OTHER "(other)"

struct profile;
struct strset;

struct series_pair {
	int64_t key, value; /* ids in texts */
};

struct series_group {
	uint32_t pair_first, pair_cnt; /* sorted by key */
	int64_t inuse_bytes, alloc_bytes;
	uint32_t rank; /* 0 = the largest */
};

struct series_groups {
	const struct profile *p;
	struct strset *texts;
	struct strset *keys; /* a group as a text: its id is the group's index + 1 */
	VEC(struct series_pair) pairs;
	VEC(struct series_group) groups;
	uint32_t *group_of; /* of each row; groups that went into the rest have its number */
	uint32_t *order; /* rows by (rank of the group, stack): the rest last */
	size_t folded_cnt;
};

/* Make one group for each (scope, pool); all rows of the rest have both as "(other)". */
int series_groups_by_pool(const struct profile *p, size_t max_cnt, struct series_groups *ret);
/* Make one group for each set of labels. */
int series_groups_by_labels(const struct profile *p, size_t max_cnt, const char *const *taken,
			    struct series_groups *ret);
void series_groups_release(struct series_groups *g);

/* Value of a group's label, or NULL. */
const char *series_group_text(const struct series_groups *g, uint32_t group, const char *key);
/* Whether two rows have the same stack. */
bool series_same_stack(const struct profile *p, uint32_t a, uint32_t b);

#endif
