/* SPDX-License-Identifier: MIT */
/*
 * report_heap_v2.c - a heap dump in jemalloc's format, with the names in front as in report_heap.c:
 *
 *	--- symbol
 *	...
 *	---
 *	heap_v2/65536                             one sample per this many bytes
 *	  t*: 30: 41000 [0: 0]                    all threads: objects, bytes in use; [allocated]
 *	  t1: 30: 41000 [0: 0] worker             one thread, and its name
 *	@ 0x0001000000001211 0x0001000000001300
 *	  t*: 30: 41000 [0: 0]
 *	  t1: 30: 41000 [0: 0]
 *
 *	MAPPED_LIBRARIES:
 *	...
 *
 * The numbers are those of samples: a reader scales them up. So a row's estimate is turned back
 * into what was sampled of it (import_lines.h has the formula: objects and bytes are divided by the
 * same number, and their mean stays). Samples are whole: a row, and a thread's part of it, is off
 * by up to half a sample, which is less than its random error; except for that, the parts add up to
 * the row.
 *
 * At a rate of R a sample stands for R bytes or more. A smaller row (its samples were drawn at
 * other rates, or it is a difference) cannot be expressed at the profile's rate. Then all rows use
 * a lower rate, at which each, and each thread's part of it, has at least 3/4 of a sample. An
 * unsampled profile has "heap_v2/1" and its own numbers; jeprof scales those of objects under 8
 * bytes, which no allocator hands out.
 *
 * Samples without a thread are those of t0, if others have one.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"
#include "base/vec.h"
#include "report/report_heap_priv.h"
#include "report/report_rows.h"

#define VALUE_MAX 9e18 /* the most that a reader takes */
#define SAMPLES_MIN 0.75 /* of a row, and of each thread in it */

struct counts {
	int64_t objects, bytes, alloc_objects, alloc_bytes;
};

struct heap_v2 {
	struct heap_text text;
	const struct report *r;
	uint64_t rate_bytes; /* 1: not sampled */
	VEC(int64_t) threads; /* names, strings of the profile; the first is of no thread */
	uint32_t *thread_of; /* by sample */
	struct counts *sums; /* of the current row, by thread; all 0 between rows */
	VEC(uint32_t) touched; /* the threads of that row */
	struct counts *totals, total; /* of all rows, by thread and together */
};

static void add(struct counts *into, const struct counts *c)
{
	into->objects = report_add_saturating(into->objects, c->objects);
	into->bytes = report_add_saturating(into->bytes, c->bytes);
	into->alloc_objects = report_add_saturating(into->alloc_objects, c->alloc_objects);
	into->alloc_bytes = report_add_saturating(into->alloc_bytes, c->alloc_bytes);
}

/* Convert an estimate to the numbers of its samples. */
static void to_samples(uint64_t rate_bytes, int64_t *objects, int64_t *bytes)
{
	double mean, kept;

	*objects = *objects > 0 ? *objects : 0;
	*bytes = *bytes > 0 ? *bytes : 0;
	if (rate_bytes <= 1 || !*objects || !*bytes)
		return;
	mean = (double)*bytes / (double)*objects;
	kept = fmax(round((double)*objects * -expm1(-mean / (double)rate_bytes)), 1);
	*objects = (int64_t)fmin(kept, VALUE_MAX);
	*bytes = (int64_t)fmin(round(kept * mean), VALUE_MAX);
}

static struct counts sampled(const struct heap_v2 *v, struct counts c)
{
	to_samples(v->rate_bytes, &c.objects, &c.bytes);
	to_samples(v->rate_bytes, &c.alloc_objects, &c.alloc_bytes);
	return c;
}

static int64_t thread_name(const struct profile *p, const struct profile_sample *s)
{
	for (uint32_t i = 0; i < s->label_cnt; i++) {
		const struct profile_label *l = &p->labels.data[s->label_first + i];

		if (l->str && !strcmp(profile_text(p, l->key_str), "thread"))
			return l->str;
	}
	return 0;
}

static int number_threads(struct heap_v2 *v)
{
	const struct profile *p = v->r->p;
	struct hmap number_by_name;
	int err = vec_push(&v->threads, 0);

	hmap_init(&number_by_name, sizeof(int64_t));
	for (size_t i = 0; i < p->samples.cnt && !err; i++) {
		int64_t name = thread_name(p, &p->samples.data[i]);
		const uint64_t *known = hmap_get(&number_by_name, &name);

		v->thread_of[i] = known ? (uint32_t)*known : 0;
		if (known || !name)
			continue;
		v->thread_of[i] = v->threads.cnt;
		err = hmap_put(&number_by_name, &name, v->threads.cnt);
		if (!err)
			err = vec_push(&v->threads, name);
	}
	hmap_release(&number_by_name);
	return err;
}

static int open_threads(struct heap_v2 *v)
{
	int err;

	v->thread_of = calloc(v->r->p->samples.cnt + 1, sizeof(*v->thread_of));
	err = v->thread_of ? number_threads(v) : -ENOMEM;
	if (err)
		return err;
	v->sums = calloc(v->threads.cnt, sizeof(*v->sums));
	v->totals = calloc(v->threads.cnt, sizeof(*v->totals));
	return v->sums && v->totals ? 0 : -ENOMEM;
}

static int64_t value_of(const struct report *r, const struct profile_sample *s, int type)
{
	return type < 0 ? 0 : r->p->values.data[s->value_first + type];
}

static bool is_touched(const struct counts *c)
{
	return c->objects || c->bytes || c->alloc_objects || c->alloc_bytes;
}

/* Add a row to sums, by thread, and note the threads in touched. */
static int sum_row(struct heap_v2 *v, const struct report_row *row)
{
	const struct report *r = v->r;

	for (uint32_t k = 0; k < row->sample_cnt; k++) {
		uint32_t i = r->order.data[row->sample_first + k];
		const struct profile_sample *s = &r->p->samples.data[i];
		const struct counts c = { value_of(r, s, r->objects_type),
					  value_of(r, s, r->value_type),
					  value_of(r, s, r->alloc_objects_type),
					  value_of(r, s, r->alloc_type) };
		struct counts *sum = &v->sums[v->thread_of[i]];

		if (!is_touched(sum) && is_touched(&c) && vec_push(&v->touched, v->thread_of[i]))
			return -ENOMEM;
		add(sum, &c);
	}
	return 0;
}

static void put_counts(const struct counts *c, FILE *out)
{
	fprintf(out, "%" PRId64 ": %" PRId64 " [%" PRId64 ": %" PRId64 "]", c->objects, c->bytes,
		c->alloc_objects, c->alloc_bytes);
}

static struct counts row_counts(const struct heap_v2 *v, const struct report_row *row)
{
	return sampled(v,
		       (struct counts){ row->objects, row->value, row->alloc_objects, row->alloc });
}

/* Lower the rate until these numbers have SAMPLES_MIN of a sample. */
static void bound_rate(struct heap_v2 *v, int64_t objects, int64_t bytes)
{
	double rate_bytes;

	if (objects <= 0 || bytes <= 0)
		return;
	rate_bytes = -((double)bytes / (double)objects) / log1p(-SAMPLES_MIN / (double)objects);
	if (rate_bytes < (double)v->rate_bytes)
		v->rate_bytes = rate_bytes > 1 ? (uint64_t)rate_bytes : 1;
}

static int choose_rate(struct heap_v2 *v)
{
	const struct report_row *row;
	int err = 0;

	v->rate_bytes = v->r->rate_bytes > 1 ? v->r->rate_bytes : 1;
	vec_each(&v->r->rows, row) {
		if (err)
			break;
		bound_rate(v, row->objects, row->value);
		bound_rate(v, row->alloc_objects, row->alloc);
		err = sum_row(v, row);
		for (size_t i = 0; i < v->touched.cnt; i++) {
			struct counts *c = &v->sums[v->touched.data[i]];

			bound_rate(v, c->objects, c->bytes);
			bound_rate(v, c->alloc_objects, c->alloc_bytes);
			*c = (struct counts){ 0 };
		}
		v->touched.cnt = 0;
	}
	return err;
}

/* Called twice for each row: for the totals, which come first, and to write it. */
static int do_row(struct heap_v2 *v, const struct report_row *row, bool writes)
{
	const struct counts all = row_counts(v, row);
	FILE *out = v->text.out;
	int err = sum_row(v, row);

	if (writes && !err) {
		fputc('@', out);
		report_heap_put_stack(&v->text, row);
		fputs("  t*: ", out);
		put_counts(&all, out);
		fputc('\n', out);
	}
	for (size_t i = 0; i < v->touched.cnt; i++) {
		uint32_t thread = v->touched.data[i];
		const struct counts c = sampled(v, v->sums[thread]);

		if (!writes)
			add(&v->totals[thread], &c);
		else if (v->threads.cnt > 1 && is_touched(&c)) {
			fprintf(out, "  t%" PRIu32 ": ", thread);
			put_counts(&c, out);
			fputc('\n', out);
		}
		v->sums[thread] = (struct counts){ 0 };
	}
	v->touched.cnt = 0;
	if (!writes)
		add(&v->total, &all);
	return err;
}

static void put_head(const struct heap_v2 *v)
{
	FILE *out = v->text.out;

	fprintf(out, "heap_v2/%" PRIu64 "\n  t*: ", v->rate_bytes);
	put_counts(&v->total, out);
	fputc('\n', out);
	for (size_t i = 0; i < v->threads.cnt && v->threads.cnt > 1; i++) {
		if (!is_touched(&v->totals[i]))
			continue;
		fprintf(out, "  t%zu: ", i);
		put_counts(&v->totals[i], out);
		if (v->threads.data[i])
			fputc(' ', out);
		report_heap_put_text(profile_text(v->r->p, v->threads.data[i]), out);
		fputc('\n', out);
	}
}

int report_write_heap_v2(const struct report *r, FILE *out)
{
	struct heap_v2 v = { .r = r };
	const struct report_row *row;
	int err = report_heap_open(r, out, &v.text);

	if (!err)
		err = open_threads(&v);
	if (!err)
		err = choose_rate(&v);
	for (size_t i = 0; i < r->rows.cnt && !err; i++)
		err = do_row(&v, &r->rows.data[i], false);
	if (!err)
		err = report_heap_put_symbols(&v.text);
	if (!err)
		put_head(&v);
	vec_each(&r->rows, row)
		if (!err)
			err = do_row(&v, row, true);
	if (!err)
		report_heap_put_mappings(&v.text);
	report_heap_release(&v.text);
	vec_release(&v.threads);
	vec_release(&v.touched);
	free(v.thread_of);
	free(v.sums);
	free(v.totals);
	return err;
}
