/* SPDX-License-Identifier: MIT */
/*
 * test_age.c - classes of age and their names, the median, what is left of a profile that is older than a
 * bound, and a report by age, whose rows add up.
 */
#include "made_profile.h"
#include "profile/bins.h"
#include "profile/moment.h"
#include "report/report_rows.h"

#define S_NS 1000000000ULL

TEST(test_classes)
{
	char name[AGE_NAME_BUF];

	for (uint32_t c = 0; c < AGE_CLASS_CNT; c++) {
		assert_true(age_bound_ns(c) < age_bound_ns(c + 1));
		assert_int_equal(age_class_of(age_bound_ns(c)), c);
		assert_int_equal(age_class_of(age_bound_ns(c + 1) - 1), c);
	}
	assert_string_equal(age_class_name(0, name), "under 0.1 s");
	assert_string_equal(age_class_name(age_class_of(600 * S_NS), name), "10 min to 15 min");
	assert_string_equal(age_class_name(age_class_of(45 * S_NS), name), "45 s to 1 min");
	assert_string_equal(age_class_name(age_class_of(61 * S_NS), name), "1 min to 90 s");
	assert_string_equal(age_class_name(age_class_of(45 * 60 * S_NS), name), "45 min to 1 h");
	assert_string_equal(age_class_name(AGE_CLASS_CNT - 1, name), "7 d or more");
}

TEST(test_median)
{
	struct age_sums sums = { .oldest_ns = 25 * S_NS }, more = { 0 };
	double median;

	assert_false(age_median_s(&more, &median));
	sums.bytes[age_class_of(10 * S_NS)] = 100; /* to 15 s */
	assert_true(age_median_s(&sums, &median));
	assert_true(fabs(median - 12.5) < 1e-9);
	more.bytes[age_class_of(20 * S_NS)] = 200; /* to 25 s, the oldest */
	age_merge(&sums, &more);
	assert_true(age_median_s(&sums, &median));
	assert_true(fabs(median - 21.25) < 1e-9);
}

static void add_sample(struct profile *p, const char *function, const double *bytes_at_s,
		       size_t cnt)
{
	int64_t values[PROFILE_VALUE_CNT] = { 900, 90000, 0, 0 };
	uint32_t loc = made_function(p, function);
	struct profile_sample *s;
	double bytes = 0;

	for (size_t i = 0; i < cnt; i++)
		bytes += bytes_at_s[2 * i + 1];
	values[PROFILE_INUSE_SPACE] = llround(bytes);
	values[PROFILE_INUSE_OBJECTS] = (int64_t)cnt;
	assert_int_equal(profile_add_sample(p, &loc, 1, values, NULL, 0, &s), 0);
	s->has_error = true;
	s->inuse_samples = cnt;
	for (size_t i = 0; i < cnt; i++) {
		struct age_part part = { .age_class =
						 age_class_of((uint64_t)(bytes_at_s[2 * i] * S_NS)),
					 .samples = 1,
					 .bytes = bytes_at_s[2 * i + 1],
					 .objects = 1,
					 .bytes_variance = 10 };

		s->inuse_bytes_variance += 10;
		s->oldest_ns = (uint64_t)(bytes_at_s[2 * i] * S_NS);
		assert_int_equal(profile_add_age(p, &part), 0);
	}
}

/* As it comes out of a file. Halves of bytes, which no row may lose. */
static struct profile *record(bool has_ages)
{
	static const double old[] = { 1, 10.4, 10, 20.4, 600, 300.4, 900, 0.4 };
	static const double young[] = { 0.01, 1000.5, 1, 50.2 };
	struct profile *p = made_profile(4096);

	p->time_ns = 1000 * (int64_t)S_NS;
	add_sample(p, "old", old, has_ages ? 4 : 0);
	add_sample(p, "young", young, has_ages ? 2 : 0);
	return reread(p);
}

TEST(test_by_age)
{
	static const struct {
		const char *name;
		uint64_t samples;
	} expected[] = { { "15 min to 20 min", 1 },
			 { "10 min to 15 min", 1 },
			 { "10 s to 15 s", 1 },
			 { "1 s to 2 s", 2 },
			 { "under 0.1 s", 1 } };
	struct report_options opts = { .by = REPORT_BY_AGE, .format = REPORT_JSON };
	struct profile *p = record(true);
	int64_t bytes = 0, objects = 0;
	struct report *r = open_report(p, &opts);

	assert_int_equal(r->rows.cnt, 5);
	for (size_t i = 0; i < 5; i++) {
		const struct report_row *row = &r->rows.data[i];

		assert_string_equal(strset_get(r->names, row->name), expected[i].name);
		assert_int_equal(row->estimate.samples, expected[i].samples);
		bytes += row->value;
		objects += row->objects;
	}
	assert_int_equal(bytes, r->total.value);
	assert_int_equal(objects, r->total.objects);
	assert_true(r->rows.data[4].value == 1000 || r->rows.data[4].value == 1001);
}

TEST(test_older)
{
	struct report_options opts = { .by = REPORT_BY_FUNCTION, .format = REPORT_JSON };
	struct profile *p = record(true);
	struct report *r;
	double median;

	assert_int_equal(profile_keep_older(p, 600 * S_NS), 0);
	assert_int_equal(p->samples.cnt, 1);
	r = open_report(p, &opts);
	assert_int_equal(r->rows.cnt, 1);
	assert_string_equal(strset_get(r->names, r->rows.data[0].name), "old");
	assert_int_equal(r->rows.data[0].value, 301);
	assert_int_equal(r->rows.data[0].objects, 2);
	assert_int_equal(r->rows.data[0].estimate.samples, 2);
	assert_true(r->rows.data[0].estimate.bytes_variance == 20);
	assert_true(r->alloc_type < 0);
	assert_true(age_median_s(&r->rows.data[0].ages, &median) && median > 600 && median < 900);
	assert_int_equal(profile_keep_older(p, 24 * 3600 * S_NS), 0);
	assert_int_equal(p->samples.cnt, 0);
}

TEST(test_unknown)
{
	struct report_options opts = { .by = REPORT_BY_AGE };
	struct profile *p = record(false);
	struct err why;

	assert_int_equal(profile_keep_older(p, S_NS), -ENODATA);
	assert_int_equal(p->samples.cnt, 2);
	assert_int_equal(report_check(p, &opts, &why), -ENODATA);
}

RUN_TESTS()
