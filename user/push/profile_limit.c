/* SPDX-License-Identifier: MIT */
/*
 * profile_limit.c - see profile_limit.h.
 *
 * Too many rows are folded at once, at full depth. The size of a profile is known only when it is written: so it is
 * made, measured, and made again with less until it fits: first with flatter stacks, then with a share of the rows that
 * shrinks by at least a tenth each time. A profile that fits, which is the rule, is made once.
 */
#include "push/profile_limit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "push/profile_copy.h"

/* Deeper stacks are recursion, or frameworks whose outer layers are all alike. */
static const size_t depths[] = { 512, 128, 64 };
#define DEPTH_CNT (sizeof(depths) / sizeof(*depths))

struct shrink {
	const struct profile *p;
	int weight_type; /* type of the values by which rows are compared */
	uint32_t *by_size; /* rows, the largest first */
	int64_t *sums;
	VEC(struct profile_label) labels;
	VEC(uint32_t) set_of; /* for row i: the first row with the same labels */
};

static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct shrink *s = ctx;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	int64_t x = s->p->values.data[s->p->samples.data[i].value_first + s->weight_type];
	int64_t y = s->p->values.data[s->p->samples.data[k].value_first + s->weight_type];

	if (x != y)
		return x > y ? -1 : 1;
	return i < k ? -1 : i > k;
}

static bool same_labels(const struct profile *p, uint32_t a, uint32_t b)
{
	const struct profile_sample *x = &p->samples.data[a], *y = &p->samples.data[b];

	if (x->label_cnt != y->label_cnt)
		return false;
	for (uint32_t i = 0; i < x->label_cnt; i++) {
		const struct profile_label *l = &p->labels.data[x->label_first + i];
		const struct profile_label *m = &p->labels.data[y->label_first + i];

		if (l->key_str != m->key_str || l->str != m->str || l->num != m->num)
			return false;
	}
	return true;
}

/* series_rows() places rows with the same labels side by side; where they are not, there are more rows "[other]"
 * than necessary. */
static int find_label_sets(struct shrink *s)
{
	if (vec_reserve(&s->set_of, s->p->samples.cnt + 1))
		return -ENOMEM;
	for (size_t i = 0; i < s->p->samples.cnt; i++)
		s->set_of.data[i] =
			i && same_labels(s->p, i - 1, i) ? s->set_of.data[i - 1] : (uint32_t)i;
	return 0;
}

static int copy_labels(struct shrink *s, struct profile_copy *c, const struct profile_sample *row)
{
	s->labels.cnt = 0;
	for (uint32_t i = 0; i < row->label_cnt; i++) {
		struct profile_label l = s->p->labels.data[row->label_first + i];

		l.key_str = profile_copy_str(c, l.key_str);
		l.str = profile_copy_str(c, l.str);
		l.num_unit_str = profile_copy_str(c, l.num_unit_str);
		if (l.key_str < 0 || l.str < 0 || l.num_unit_str < 0 || vec_push(&s->labels, l))
			return -ENOMEM;
	}
	return 0;
}

static int add_row(struct shrink *s, struct profile_copy *c, uint32_t row, size_t depth,
		   int64_t *cut_loc, struct profile_limited *lost)
{
	const struct profile_sample *from = &s->p->samples.data[row];
	bool is_cut = from->loc_cnt > depth;
	size_t cnt = is_cut ? depth - 1 : from->loc_cnt;
	int err = copy_labels(s, c, from);

	if (!err && is_cut && *cut_loc < 0) {
		*cut_loc = profile_copy_named(c, LIMIT_CUT);
		err = *cut_loc < 0 ? (int)*cut_loc : 0;
	}
	if (!err)
		err = profile_copy_stack(c, s->p->sample_locs.data + from->loc_first, cnt);
	if (!err && is_cut) {
		c->stack.data[cnt++] = *cut_loc; /* there is room for one more */
		lost->cut_stacks++;
	}
	return err ? err :
		     profile_add_sample(c->to, c->stack.data, cnt,
					s->p->values.data + from->value_first, s->labels.data,
					s->labels.cnt, NULL);
}

/* Add rows "[other]" for rows that are not kept: one for each run of the same labels. */
static int add_others(struct shrink *s, struct profile_copy *c, const bool *is_kept)
{
	const struct profile *p = s->p;
	int64_t loc = profile_copy_named(c, LIMIT_OTHER);
	uint32_t other = loc;
	int err = loc < 0 ? (int)loc : 0;

	for (size_t i = 0; i < p->samples.cnt && !err;) {
		size_t first = i, cnt = 0;

		memset(s->sums, 0, p->types.cnt * sizeof(*s->sums));
		for (; i < p->samples.cnt && s->set_of.data[i] == first; i++) {
			const int64_t *values = p->values.data + p->samples.data[i].value_first;

			cnt += !is_kept[i];
			for (size_t k = 0; k < p->types.cnt && !is_kept[i]; k++)
				if (__builtin_add_overflow(s->sums[k], values[k], &s->sums[k]))
					s->sums[k] = INT64_MAX;
		}
		if (!cnt)
			continue;
		err = copy_labels(s, c, &p->samples.data[first]);
		if (!err)
			err = profile_add_sample(c->to, &other, 1, s->sums, s->labels.data,
						 s->labels.cnt, NULL);
	}
	return err;
}

static int make(struct shrink *s, size_t rows, size_t depth, struct profile **ret,
		struct profile_limited *lost)
{
	size_t cnt = s->p->samples.cnt;
	bool *is_kept = calloc(cnt + 1, sizeof(*is_kept));
	struct profile_copy c = { 0 };
	int64_t cut_loc = -1;
	int err = is_kept ? profile_copy_begin(&c, s->p, false) : -ENOMEM;

	*lost = (struct profile_limited){ .folded_rows = rows < cnt ? cnt - rows : 0 };
	for (size_t i = 0; i < cnt && i < rows && !err; i++)
		is_kept[s->by_size[i]] = true;
	/* Keep their order, so that the same labels stay side by side. */
	for (size_t i = 0; i < cnt && !err; i++)
		if (is_kept[i])
			err = add_row(s, &c, i, depth, &cut_loc, lost);
	if (!err && rows < cnt)
		err = add_others(s, &c, is_kept);
	if (!err)
		*ret = profile_copy_take(&c);
	profile_copy_release(&c);
	free(is_kept);
	return err;
}

/* Reduce the rows in proportion to the excess of bytes, at least by a tenth. */
static size_t fewer(size_t rows, uint64_t max, uint64_t bytes)
{
	size_t by_bytes = (size_t)((double)rows * (double)max / (double)bytes);
	size_t by_tenth = rows - rows / 10;

	if (by_tenth == rows)
		by_tenth = rows - 1;
	return by_bytes < by_tenth ? by_bytes : by_tenth;
}

static int shrink_until_it_fits(struct shrink *s, const struct profile_limits *limits,
				struct profile **ret, struct profile_limited *lost)
{
	size_t rows = s->p->samples.cnt, depth = 0;

	for (;;) {
		struct profile *p;
		uint64_t bytes;
		size_t others;
		int err = make(s, rows, depths[depth], &p, lost);

		if (err)
			return err;
		err = pprof_bytes(p, &bytes);
		if (!err && p->samples.cnt <= limits->row_max && bytes <= limits->bytes_max) {
			*ret = p;
			return 0;
		}
		others = p->samples.cnt - rows;
		profile_free(p);
		if (err)
			return err;
		if (!rows)
			return -E2BIG;
		if (others + rows > limits->row_max) {
			/* Folding may add a row to each set of labels: the next round will show. */
			size_t room = limits->row_max > others ? limits->row_max - others : 0;

			rows = room < rows ? room : rows - rows / 64 - 1;
		} else if (depth + 1 < DEPTH_CNT) {
			depth++;
		} else {
			rows = fewer(rows, limits->bytes_max, bytes);
		}
	}
}

int profile_limit(const struct profile *p, const struct profile_limits *limits,
		  struct profile **ret, struct profile_limited *ret_lost)
{
	struct shrink s = { .p = p };
	int err;

	if (!p->types.cnt)
		return -EINVAL;
	s.weight_type = profile_find_type(p, "inuse_space");
	if (s.weight_type < 0)
		s.weight_type = profile_find_type(p, "alloc_space");
	if (s.weight_type < 0)
		s.weight_type = 0;
	s.by_size = calloc(p->samples.cnt + 1, sizeof(*s.by_size));
	s.sums = calloc(p->types.cnt + 1, sizeof(*s.sums));
	err = s.by_size && s.sums ? find_label_sets(&s) : -ENOMEM;
	if (!err) {
		for (size_t i = 0; i < p->samples.cnt; i++)
			s.by_size[i] = i;
		qsort_r(s.by_size, p->samples.cnt, sizeof(*s.by_size), compare_rows, &s);
		err = shrink_until_it_fits(&s, limits, ret, ret_lost);
	}
	vec_release(&s.labels);
	vec_release(&s.set_of);
	free(s.by_size);
	free(s.sums);
	return err;
}
