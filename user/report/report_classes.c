/* SPDX-License-Identifier: MIT */
/*
 * report_classes.c - the rows of a report by age, lifetime and size: what is in use by its age, and
 * what was allocated by its lifetime or size.
 *
 * Each sample is divided among the classes of its blocks. Its value is in whole bytes, the parts
 * are not. So the running sum up to each class is rounded, and the rows add up to the total to the
 * byte.
 *
 * Blocks that are not freed have no lifetime: they have lived at least their age, and may live on.
 * They are a row of their own, so that nobody takes the lifetimes of freed blocks for those of all
 * blocks.
 */

#include "report/report_rows.h"

/* The last two classes of any kind. */
#define NOT_FREED HT_BIN_CNT
#define NOT_KNOWN (HT_BIN_CNT + 1)
#define CLASS_CNT (HT_BIN_CNT + 2)
_Static_assert(AGE_CLASS_CNT <= HT_BIN_CNT, "ages and bins have room in one table");

/* A sample while it is divided. */
struct division {
	struct report_row whole;
	struct estimate sum; /* of the parts so far; given to rows so far: */
	int64_t bytes, objects;
};

static struct division divide(const struct report *r, const struct profile_sample *s)
{
	struct division d = { 0 };

	report_add_sample(r, s, &d.whole);
	return d;
}

/* Round, up to the value of the sample: a file may have any values as parts. */
static int64_t rounded(double sum, int64_t whole)
{
	return sum < (double)whole ? llround(sum) : whole;
}

static void give(struct division *d, struct report_row *row, const struct estimate *part,
		 int64_t bytes_to, int64_t objects_to)
{
	struct estimate e = *part;

	e.rate_bytes = d->whole.estimate.rate_bytes;
	row->value = report_add_saturating(row->value, bytes_to - d->bytes);
	row->objects = report_add_saturating(row->objects, objects_to - d->objects);
	estimate_merge(&row->estimate, &e);
	estimate_merge(&d->sum, part);
	d->bytes = bytes_to;
	d->objects = objects_to;
}

static void give_part(struct division *d, struct report_row *row, const struct estimate *part)
{
	give(d, row, part, rounded(d->sum.bytes + part->bytes, d->whole.value),
	     rounded(d->sum.objects + part->objects, d->whole.objects));
}

/* Give what remains. */
static void give_rest(struct division *d, struct report_row *row)
{
	struct estimate rest = d->whole.estimate;

	if (d->objects && d->objects == d->whole.objects && d->bytes == d->whole.value)
		return;
	estimate_subtract(&rest, &d->sum);
	if (isnan(d->sum.bytes_variance))
		rest.bytes_variance = NAN;
	give(d, row, &rest, d->whole.value, d->whole.objects);
}

static void divide_by_age(const struct report *r, const struct profile_sample *s,
			  struct report_row *rows)
{
	struct division d = divide(r, s);

	for (uint32_t i = 0; i < s->age_cnt; i++) {
		const struct age_part *part = &r->p->ages.data[s->age_first + i];
		const struct estimate e = { .samples = part->samples,
					    .bytes = part->bytes,
					    .bytes_variance = part->bytes_variance,
					    .objects = part->objects,
					    .objects_variance = part->objects_variance };

		if (i + 1 < s->age_cnt)
			give_part(&d, &rows[part->age_class], &e);
		else
			give(&d, &rows[part->age_class], &e, d.whole.value, d.whole.objects);
	}
	give_rest(&d, &rows[NOT_KNOWN]);
}

/* Give what was freed at an unknown time. */
static void give_freed(struct division *d, const struct profile_sample *s, struct report_row *row)
{
	struct estimate part = { .bytes = fmax(0, s->freed_bytes - d->sum.bytes),
				 .objects = fmax(0, s->freed_objects - d->sum.objects),
				 .bytes_variance = NAN };

	/* less is left by rounding */
	if (part.bytes >= 1 || part.objects >= 1)
		give_part(d, row, &part);
}

static void divide_by_bin(const struct report *r, const struct profile_sample *s,
			  struct report_row *rows)
{
	bool is_by_size = r->opts->by == REPORT_BY_SIZE;
	bool is_since = r->p->recording.inuse == RECORDING_INUSE_SINCE;
	struct division d = divide(r, s);

	for (uint32_t i = 0; i < s->bin_cnt; i++) {
		const struct bin_part *part = &r->p->bins.data[s->bin_first + i];
		const struct estimate e = { .samples = part->samples,
					    .bytes = part->bytes,
					    .bytes_variance = part->bytes_variance,
					    .objects = part->objects };

		if ((part->bin < HT_BIN_LIFE) == is_by_size)
			give_part(&d, &rows[part->bin], &e);
	}
	if (!is_by_size)
		give_freed(&d, s, &rows[NOT_KNOWN]);
	/* frees before that time were not seen, so a missing free is no life that goes on */
	give_rest(&d, &rows[is_by_size || is_since ? NOT_KNOWN : NOT_FREED]);
}

static const char *class_name(const struct report *r, uint32_t c, char buf[AGE_NAME_BUF])
{
	_Static_assert(AGE_NAME_BUF >= BIN_NAME_BUF, "room for either");

	if (c == NOT_KNOWN)
		return "(not known)";
	if (c == NOT_FREED)
		return "(not freed)";
	return r->opts->by == REPORT_BY_AGE ? age_class_name(c, buf) : bin_name(c, buf);
}

/* By age: oldest first; else in class order. */
static int push_rows(struct report *r, struct report_row *rows)
{
	char name[AGE_NAME_BUF];

	for (uint32_t c = 0; c < CLASS_CNT; c++) {
		struct report_row *row = &rows[c];

		if (!row->value && !row->objects && !row->estimate.samples)
			continue;
		row->class_rank = r->opts->by == REPORT_BY_AGE && c < AGE_CLASS_CNT ?
					  AGE_CLASS_CNT - 1 - c :
					  c;
		row->name = strset_add(r->names, class_name(r, c, name));
		if (row->name < 0 || vec_push(&r->rows, *row))
			return -ENOMEM;
	}
	return 0;
}

int report_rows_by_age(struct report *r)
{
	struct report_row rows[CLASS_CNT] = { 0 };
	const uint32_t *i;

	vec_each(&r->chosen, i)
		divide_by_age(r, &r->p->samples.data[*i], rows);
	return push_rows(r, rows);
}

int report_rows_by_bin(struct report *r)
{
	struct report_row rows[CLASS_CNT] = { 0 };
	const uint32_t *i;

	vec_each(&r->chosen, i)
		divide_by_bin(r, &r->p->samples.data[*i], rows);
	return push_rows(r, rows);
}
