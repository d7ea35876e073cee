/* SPDX-License-Identifier: MIT */
/* top_rates.c - see top_priv.h. */
#include "record/top_priv.h"

#include "base/clock.h"

void top_rates_init(struct top_rates *r)
{
	*r = (struct top_rates){ 0 };
	hmap_init(&r->by_id, sizeof(uint64_t));
}

void top_rates_release(struct top_rates *r)
{
	vec_release(&r->all);
	hmap_release(&r->by_id);
}

static int get_past(struct top_rates *r, enum top_what what, const char *key, struct top_past **ret)
{
	struct top_past fresh = { .id = top_row_id(what, key), .what = what };
	uint64_t i;
	int err = hmap_add(&r->by_id, &fresh.id, r->all.cnt, &i);

	if (!err && i == r->all.cnt)
		err = vec_push(&r->all, fresh);
	if (!err)
		*ret = &r->all.data[i];
	return err;
}

/* The last point that is old enough for comparison, at first the only one; NULL: none is. */
static const struct top_point *last_before(const struct top_past *p, uint64_t now)
{
	for (size_t i = p->cnt; i--;)
		if (now >= p->points[i].time_ns + TOP_RATES_STEP_NS)
			return &p->points[i];
	return p->cnt && now >= p->points[0].time_ns + TOP_RATES_FIRST_NS ? p->points : NULL;
}

/*
 * Drop points older than a minute, but keep the last of them while no later point is old enough: then growth covers
 * a longer time, which is better than none.
 */
static void drop_old(struct top_past *p, uint64_t now)
{
	size_t gone = 0;

	while (gone + 1 < p->cnt && now > p->points[gone].time_ns + TOP_RATES_SPAN_NS &&
	       now >= p->points[gone + 1].time_ns + TOP_RATES_STEP_NS)
		gone++;
	p->cnt -= gone;
	memmove(p->points, p->points + gone, p->cnt * sizeof(*p->points));
}

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
	return (double)(to_ns - from_ns) / (double)NS_PER_S;
}

static void fill(const struct top_past *p, uint64_t now, struct top_row *row)
{
	const struct top_point *first = p->points, *last = last_before(p, now);
	double change, variance;

	row->growth_per_min = row->alloc_per_s = NAN;
	row->growth_is_weak = false;
	if (!last) /* then the first is not old enough either */
		return;
	change = row->held_bytes - first->held_bytes;
	variance = row->held_variance + first->variance;
	row->growth_per_min = 60 * change / seconds(first->time_ns, now);
	row->growth_is_weak = change != 0 && !(fabs(change) > 1.96 * sqrt(variance));
	/* A process that restarts under the same pid begins at 0. */
	if (row->alloc_bytes >= last->alloc_bytes)
		row->alloc_per_s =
			(row->alloc_bytes - last->alloc_bytes) / seconds(last->time_ns, now);
}

static void add_point(struct top_past *p, uint64_t now, const struct top_row *row)
{
	const struct top_point fresh = { now, row->held_bytes, row->held_variance,
					 row->alloc_bytes };

	/* A row whose value was unknown, or is unknown now, has no past. */
	if (p->cnt && isnan(p->points[p->cnt - 1].held_bytes) != isnan(row->held_bytes))
		p->cnt = 0;
	if (p->cnt && now < p->points[p->cnt - 1].time_ns + TOP_RATES_STEP_NS)
		return;
	p->points[p->cnt++] = fresh; /* drop_old() has made room: STEP apart, in one SPAN */
}

/* A mark for each point, as high as it is compared with the highest. */
static void put_spark(const struct top_past *p, double now_bytes, char spark[static TOP_SPARK_BUF])
{
	static const char *const marks[] = { "\u2581", "\u2582", "\u2583", "\u2584",
					     "\u2585", "\u2586", "\u2587", "\u2588" };
	double top = now_bytes;
	size_t used = 0;

	_Static_assert(3 * TOP_RATES_POINT_CNT < TOP_SPARK_BUF, "a mark has three bytes");
	spark[0] = '\0';
	for (size_t i = 0; i < p->cnt; i++)
		top = fmax(top, p->points[i].held_bytes);
	if (p->cnt < 2 || !(top > 0)) /* NAN: unknown */
		return;
	for (size_t i = 0; i < p->cnt; i++)
		used += (size_t)snprintf(
			spark + used, TOP_SPARK_BUF - used, "%s",
			marks[(size_t)fmin(7, fmax(0, 8 * p->points[i].held_bytes / top))]);
}

/* Rows that have gone have no past. */
static bool is_over(const struct top_rates *r, const struct top_past *p, enum top_what what)
{
	return p->what == what && p->update != r->update;
}

static int sweep(struct top_rates *r, enum top_what what)
{
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < r->all.cnt; i++)
		if (!is_over(r, &r->all.data[i], what))
			r->all.data[kept++] = r->all.data[i];
	if (kept == r->all.cnt)
		return 0;
	r->all.cnt = kept;
	hmap_release(&r->by_id);
	hmap_init(&r->by_id, sizeof(uint64_t));
	for (size_t i = 0; i < kept && !err; i++)
		err = hmap_put(&r->by_id, &r->all.data[i].id, i);
	return err;
}

/* spark: NULL, or to be filled. */
static int update_row(struct top_rates *r, enum top_what what, uint64_t now, struct top_row *row,
		      char *spark)
{
	struct top_past *p;
	int err = get_past(r, what, row->key, &p);

	if (err)
		return err;
	drop_old(p, now);
	fill(p, now, row);
	if (p->update != r->update) /* two with one key: use the first */
		add_point(p, now, row);
	p->update = r->update;
	if (spark)
		put_spark(p, row->held_bytes, spark);
	return 0;
}

int top_rates_update(struct top_rates *r, uint64_t time_ns, struct top_table *t)
{
	struct top_row *row;
	int err;

	r->update++;
	/* a process's total does not depend on its rows */
	err = update_row(r, t->what == TOP_PROCESSES ? TOP_PROCESSES : TOP_STACKS, time_ns,
			 &t->total, t->spark);
	vec_each(&t->rows, row)
		if (!err)
			err = update_row(r, t->what, time_ns, row, NULL);
	return err ? err : sweep(r, t->what);
}
