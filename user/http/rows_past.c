/* SPDX-License-Identifier: MIT */
/* rows_past.c - see past.h. */
#include "http/past.h"

#include "base/hmap.h"

struct rows_past {
	struct hmap images; /* uint64_t -> struct rows_past_image, a record */
};

int rows_past_new(struct rows_past **ret)
{
	struct rows_past *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	hmap_init(&p->images, sizeof(uint64_t));
	*ret = p;
	return 0;
}

void rows_past_free(struct rows_past *p)
{
	if (!p)
		return;
	hmap_keep_records(&p->images, NULL, NULL);
	hmap_release(&p->images);
	free(p);
}

const struct rows_past_image *rows_past_find(const struct rows_past *p, uint64_t image)
{
	return hmap_record(&p->images, &image);
}

bool rows_past_is_full(const struct rows_past *p)
{
	return p->images.cnt >= ROWS_PAST_IMAGES_CAP;
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
	struct rows_past_image *i = hmap_record(&p->images, &image);
	struct rows_past_point point;
	int err;

	if (!i && rows_past_is_full(p))
		return -ENOSPC;
	if (!i)
		i = hmap_add_record(&p->images, &image, sizeof(*i));
	if (!i)
		return -ENOMEM;
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
	struct rows_past_image *i = hmap_record(&p->images, &image);

	if (i)
		i->kept_ns = now_ns;
}

static bool is_kept(void *record, const void *now_ns)
{
	const struct rows_past_image *i = record;

	return i->kept_ns + ROWS_PAST_ENDED_NS >= *(const uint64_t *)now_ns;
}

void rows_past_forget(struct rows_past *p, uint64_t now_ns)
{
	hmap_keep_records(&p->images, is_kept, &now_ns);
}
