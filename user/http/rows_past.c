/* SPDX-License-Identifier: MIT */
/* rows_past.c - see rows_past.h. */
#include "http/rows_past.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"
#include "base/vec.h"

struct rows_past {
	VEC(struct rows_past_image *) all;
	struct hmap by_image; /* uint64_t -> index in all */
};

int rows_past_new(struct rows_past **ret)
{
	struct rows_past *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	hmap_init(&p->by_image, sizeof(uint64_t));
	*ret = p;
	return 0;
}

void rows_past_free(struct rows_past *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->all.cnt; i++)
		free(p->all.data[i]);
	vec_release(&p->all);
	hmap_release(&p->by_image);
	free(p);
}

static struct rows_past_image *find(const struct rows_past *p, uint64_t image)
{
	const uint64_t *known = hmap_get(&p->by_image, &image);

	return known ? p->all.data[*known] : NULL;
}

const struct rows_past_image *rows_past_find(const struct rows_past *p, uint64_t image)
{
	return find(p, image);
}

bool rows_past_is_full(const struct rows_past *p)
{
	return p->all.cnt >= ROWS_PAST_IMAGES_CAP;
}

static int make(struct rows_past *p, uint64_t image, struct rows_past_image **ret)
{
	struct rows_past_image *one;
	int err;

	if (rows_past_is_full(p))
		return -ENOSPC;
	one = calloc(1, sizeof(*one));
	if (!one)
		return -ENOMEM;
	one->image = image;
	err = vec_push(&p->all, one);
	if (err) {
		free(one);
		return err;
	}
	err = hmap_put(&p->by_image, &image, p->all.cnt - 1);
	if (err) {
		p->all.cnt--;
		free(one);
		return err;
	}
	*ret = one;
	return 0;
}

static int add_row(const struct resident_reading_row *row, struct rows_past_point *to)
{
	for (int kind = 0; kind < ROW_CNT; kind++) {
		if (strcmp(row->name, row_name((enum row_kind)kind)) != 0)
			continue;
		to->rows[kind] += (float)row->bytes;
		return 0;
	}
	return -EINVAL;
}

int64_t rows_past_bytes(const struct rows_past_image *i, enum row_kind kind)
{
	int64_t sum = 0;

	for (uint32_t k = 0; k < i->last.row_cnt; k++)
		if (!strcmp(i->last.rows[k].name, row_name(kind)))
			sum += i->last.rows[k].bytes;
	return sum;
}

static int make_point(uint64_t time_ns, const struct resident_reading *r,
		      struct rows_past_point *ret)
{
	int err = 0;

	*ret = (struct rows_past_point){ .time_ns = time_ns };
	for (uint32_t i = 0; i < r->row_cnt && r->is_known && !err; i++)
		err = add_row(&r->rows[i], ret);
	for (int kind = 0; kind < ROW_CNT && (err || !r->is_known); kind++)
		ret->rows[kind] = NAN;
	return err;
}

/* A failed one is less than any other. */
static double sum_of(const struct rows_past_point *point)
{
	double sum = 0;

	for (int kind = 0; kind < ROW_CNT; kind++)
		sum += (double)point->rows[kind];
	return isnan(sum) ? -INFINITY : sum;
}

static void drop_old(struct rows_past_point *points, size_t *cnt, size_t cap, uint64_t now_ns,
		     uint64_t age_ns)
{
	size_t old = *cnt == cap;

	while (old < *cnt && points[old].time_ns + age_ns < now_ns)
		old++;
	*cnt -= old;
	memmove(points, points + old, *cnt * sizeof(*points));
}

static void add_point(struct rows_past_image *i, const struct rows_past_point *point)
{
	struct rows_past_point *last = i->day_cnt ? &i->day[i->day_cnt - 1] : NULL;

	drop_old(i->hour, &i->hour_cnt, ROWS_PAST_HOUR_CNT, point->time_ns, ROWS_PAST_HOUR_NS);
	i->hour[i->hour_cnt++] = *point;
	if (last &&
	    last->time_ns / ROWS_PAST_DAY_STEP_NS == point->time_ns / ROWS_PAST_DAY_STEP_NS) {
		if (sum_of(point) > sum_of(last))
			*last = *point;
		return;
	}
	drop_old(i->day, &i->day_cnt, ROWS_PAST_DAY_CNT, point->time_ns, ROWS_PAST_DAY_NS);
	i->day[i->day_cnt++] = *point;
}

static void add_known(struct rows_past_image *i, const struct rows_past_point *point,
		      const struct resident_reading *r)
{
	i->last = *r;
	i->last_ns = point->time_ns;
	i->why[0] = '\0';
	if (!i->first_ns) {
		i->first = i->last;
		i->first_ns = i->last_ns;
	}
	for (int kind = 0; kind < ROW_CNT; kind++)
		i->seen |= (uint32_t)(point->rows[kind] != 0) << kind;
}

int rows_past_add(struct rows_past *p, uint64_t image, uint64_t time_ns, uint64_t due_ns,
		  const struct resident_reading *r)
{
	struct rows_past_image *i = find(p, image);
	struct rows_past_point point;
	int err = i ? 0 : make(p, image, &i);

	if (err)
		return err;
	err = make_point(time_ns, r, &point);
	if (!err && r->is_known)
		add_known(i, &point, r);
	else
		snprintf(i->why, sizeof(i->why), "%s", r->why[0] ? r->why : "it failed");
	add_point(i, &point);
	i->due_ns = due_ns;
	i->kept_ns = time_ns;
	return err;
}

void rows_past_keep(struct rows_past *p, uint64_t image, uint64_t now_ns)
{
	struct rows_past_image *i = find(p, image);

	if (i)
		i->kept_ns = now_ns;
}

void rows_past_forget(struct rows_past *p, uint64_t now_ns)
{
	for (size_t i = p->all.cnt; i-- > 0;) {
		struct rows_past_image *one = p->all.data[i], *last = p->all.data[p->all.cnt - 1];

		if (one->kept_ns + ROWS_PAST_ENDED_NS >= now_ns)
			continue;
		p->all.data[i] = last;
		*hmap_get(&p->by_image, &last->image) = i;
		hmap_del(&p->by_image, &one->image);
		p->all.cnt--;
		free(one);
	}
}
