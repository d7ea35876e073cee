/* SPDX-License-Identifier: MIT */
/* series.c - see series.h. */
#include "metrics/series.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/strset.h"
#include "metrics/series_group.h"
#include "profile/profile.h"
#include "push/profile_copy.h"

/* Rows with the same group and stack are neighbours in order: sum up those from i on. Return the first row after
 * them. */
static size_t sum_equal_rows(const struct series_groups *g, size_t i, int64_t *sums,
			     bool *ret_is_zero)
{
	const struct profile *p = g->p;
	uint32_t first = g->order[i];

	*ret_is_zero = true;
	memset(sums, 0, p->types.cnt * sizeof(*sums));
	for (; i < p->samples.cnt; i++) {
		uint32_t row = g->order[i];
		const int64_t *values = p->values.data + p->samples.data[row].value_first;

		if (g->group_of[row] != g->group_of[first] || !series_same_stack(p, row, first))
			break;
		for (size_t k = 0; k < p->types.cnt; k++) {
			if (__builtin_add_overflow(sums[k], values[k], &sums[k]))
				sums[k] = INT64_MAX;
			*ret_is_zero = *ret_is_zero && !sums[k];
		}
	}
	return i;
}

static int add_row(struct profile_copy *c, uint32_t row, const int64_t *sums,
		   const struct profile_label *labels, size_t label_cnt)
{
	const struct profile_sample *s = &c->from->samples.data[row];
	int err = profile_copy_stack(c, c->from->sample_locs.data + s->loc_first, s->loc_cnt);

	return err ? err :
		     profile_add_sample(c->to, c->stack.data, s->loc_cnt, sums, labels, label_cnt,
					NULL);
}

static int saved_series(struct series_set *set, const struct series_groups *g, uint32_t group,
			struct profile_copy *c)
{
	struct series s = {
		.scope = strdup(series_group_text(g, group, "scope")),
		.pool = strdup(series_group_text(g, group, "thread")),
	};

	if (!s.scope || !s.pool || vec_push(&set->list, s)) {
		free(s.scope);
		free(s.pool);
		return -ENOMEM;
	}
	set->list.data[set->list.cnt - 1].profile = profile_copy_take(c);
	return 0;
}

/* Make the profile of the group that begins at *i. */
static int split_one(struct series_set *set, const struct series_groups *g, size_t *i,
		     int64_t *sums)
{
	uint32_t group = g->group_of[g->order[*i]];
	struct profile_copy c;
	int err = profile_copy_begin(&c, g->p, false);

	if (err)
		return err;
	while (!err && *i < g->p->samples.cnt && g->group_of[g->order[*i]] == group) {
		uint32_t row = g->order[*i];
		bool is_zero;

		*i = sum_equal_rows(g, *i, sums, &is_zero);
		if (!is_zero)
			err = add_row(&c, row, sums, NULL, 0);
	}
	if (!err && c.to->samples.cnt)
		err = saved_series(set, g, group, &c);
	profile_copy_release(&c);
	return err;
}

int series_split(const struct profile *p, size_t max_cnt, struct series_set *ret)
{
	int64_t *sums = calloc(p->types.cnt + 1, sizeof(*sums));
	struct series_groups g = { 0 };
	int err;

	memset(ret, 0, sizeof(*ret));
	if (!sums)
		return -ENOMEM;
	err = series_groups_by_pool(p, max_cnt, &g);
	for (size_t i = 0; i < p->samples.cnt && !err;)
		err = split_one(ret, &g, &i, sums);
	if (err)
		series_release(ret);
	else
		ret->folded_cnt = g.folded_cnt;
	series_groups_release(&g);
	free(sums);
	return err;
}

void series_release(struct series_set *set)
{
	for (size_t i = 0; i < set->list.cnt; i++) {
		profile_free(set->list.data[i].profile);
		free(set->list.data[i].scope);
		free(set->list.data[i].pool);
	}
	vec_release(&set->list);
	set->folded_cnt = 0;
}

/* Write the group's labels as labels of a row; labels has room for all. */
static int row_labels(struct profile_copy *c, const struct series_groups *g, uint32_t group,
		      struct profile_label *labels)
{
	const struct series_group *from = &g->groups.data[group];

	for (uint32_t i = 0; i < from->pair_cnt; i++) {
		const struct series_pair *pair = &g->pairs.data[from->pair_first + i];

		labels[i] = (struct profile_label){
			.key_str = profile_str(c->to, strset_get(g->texts, pair->key)),
			.str = profile_str(c->to, strset_get(g->texts, pair->value)),
		};
		if (labels[i].key_str < 0 || labels[i].str < 0)
			return -ENOMEM;
	}
	return 0;
}

static int copy_rows(struct profile_copy *c, const struct series_groups *g, int64_t *sums,
		     struct profile_label *labels)
{
	uint32_t last = HT_NO_INDEX;
	int err = 0;

	for (size_t i = 0; i < g->p->samples.cnt && !err;) {
		uint32_t row = g->order[i], group = g->group_of[row];
		bool is_zero;

		i = sum_equal_rows(g, i, sums, &is_zero);
		if (is_zero)
			continue;
		if (group != last)
			err = row_labels(c, g, group, labels);
		last = group;
		if (!err)
			err = add_row(c, row, sums, labels, g->groups.data[group].pair_cnt);
	}
	return err;
}

int series_rows(const struct profile *p, size_t max_cnt, const char *const *taken,
		struct profile **ret, size_t *ret_folded_cnt)
{
	int64_t *sums = calloc(p->types.cnt + 1, sizeof(*sums));
	struct profile_label *labels = NULL;
	struct series_groups g = { 0 };
	struct profile_copy c = { 0 };
	int err = sums ? series_groups_by_labels(p, max_cnt, taken, &g) : -ENOMEM;

	if (!err) {
		labels = calloc(g.pairs.cnt + 1, sizeof(*labels));
		err = labels ? profile_copy_begin(&c, p, true) : -ENOMEM;
	}
	if (!err)
		err = copy_rows(&c, &g, sums, labels);
	if (!err) {
		*ret = profile_copy_take(&c);
		*ret_folded_cnt = g.folded_cnt;
	}
	profile_copy_release(&c);
	series_groups_release(&g);
	free(labels);
	free(sums);
	return err;
}
