/* SPDX-License-Identifier: MIT */
/*
 * report_age.c - the rows of a report by age: what is in use, by how long it has been.
 *
 * Each sample is divided among the classes of its blocks. Its value is whole bytes and the parts are not, so what is
 * rounded is the sum up to each class: the rows add up to the total to the byte.
 */
#include <errno.h>
#include <math.h>

#include "report/report_rows.h"

#define NOT_KNOWN AGE_CLASS_CNT

static void add_part(struct report_row *row, int64_t bytes, int64_t objects,
		     const struct age_part *part, double rate_bytes)
{
	const struct estimate e = { .samples = part->samples,
				    .bytes = part->bytes,
				    .bytes_variance = part->bytes_variance,
				    .objects = part->objects,
				    .objects_variance = part->objects_variance,
				    .rate_bytes = rate_bytes };

	row->value = report_add_saturating(row->value, bytes);
	row->objects = report_add_saturating(row->objects, objects);
	estimate_merge(&row->estimate, &e);
}

/* Whole numbers up to the value of the sample; a file may say anything of its parts. */
static int64_t rounded(double sum, int64_t whole)
{
	return sum < (double)whole ? llround(sum) : whole;
}

static void add_sample(const struct report *r, const struct profile_sample *s,
		       struct report_row *rows)
{
	int64_t bytes = 0, objects = 0;
	struct report_row whole = { 0 };
	double bytes_sum = 0, objects_sum = 0;

	report_add_sample(r, s, &whole);
	if (!s->age_cnt) {
		report_add_sample(r, s, &rows[NOT_KNOWN]);
		return;
	}
	for (uint32_t i = 0; i < s->age_cnt; i++) {
		const struct age_part *part = &r->p->ages.data[s->age_first + i];
		bool is_last = i + 1 == s->age_cnt;
		int64_t bytes_to, objects_to;

		bytes_sum += part->bytes;
		objects_sum += part->objects;
		bytes_to = is_last ? whole.value : rounded(bytes_sum, whole.value);
		objects_to = is_last ? whole.objects : rounded(objects_sum, whole.objects);
		add_part(&rows[part->age_class], bytes_to - bytes, objects_to - objects, part,
			 (double)r->rate_bytes);
		bytes = bytes_to;
		objects = objects_to;
	}
}

int report_rows_by_age(struct report *r)
{
	struct report_row rows[AGE_CLASS_CNT + 1] = { 0 };
	const uint32_t *i;
	char name[AGE_NAME_BUF];

	vec_each(&r->chosen, i)
		add_sample(r, &r->p->samples.data[*i], rows);
	for (uint32_t c = 0; c <= NOT_KNOWN; c++) {
		rows[c].age_rank = c;
		rows[c].name = strset_add(r->names,
					  c < NOT_KNOWN ? age_class_name(c, name) : "(not known)");
		if (rows[c].name < 0)
			return -ENOMEM;
		if ((rows[c].value || rows[c].estimate.samples) && vec_push(&r->rows, rows[c]))
			return -ENOMEM;
	}
	return 0;
}
