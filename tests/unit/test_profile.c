/* SPDX-License-Identifier: MIT */
/* test_profile.c - building a profile in memory. */
#include "unit.h"

#include "profile/profile.h"

TEST(test_heap_types)
{
	struct profile *p = NULL;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_find_type(p, "inuse_space"), -ENOENT);
	assert_int_equal(profile_set_heap_types(p, 65536), 0);
	assert_int_equal(profile_set_heap_types(p, 4096), 0); /* again: not twice */
	assert_int_equal(p->types.cnt, PROFILE_VALUE_CNT);
	assert_int_equal(profile_find_type(p, "alloc_objects"), PROFILE_ALLOC_OBJECTS);
	assert_int_equal(profile_find_type(p, "inuse_space"), PROFILE_INUSE_SPACE);
	assert_int_equal(profile_find_type(p, "cpu"), -ENOENT);
	assert_string_equal(profile_text(p, p->default_type_str), "inuse_space");
	assert_string_equal(profile_text(p, p->period_type.type_str), "space");
	assert_int_equal(p->period, 4096);
	profile_free(p);
	profile_free(NULL);
}

TEST(test_values)
{
	assert_int_equal(profile_value(0.5), 1);
	assert_int_equal(profile_value(-2.5), -3);
	assert_true(profile_value(0x1p62) == (int64_t)1 << 62);
	assert_true(profile_value(0x1p63 - 1024) == INT64_MAX - 1023);
	assert_true(profile_value(0x1p63) == INT64_MAX);
	assert_true(profile_value(1e300) == INT64_MAX);
	assert_true(profile_value(INFINITY) == INT64_MAX);
	assert_true(profile_value(-0x1p63) == INT64_MIN);
	assert_true(profile_value(-1e300) == INT64_MIN);
	assert_int_equal(profile_value(NAN), 0);
}

TEST(test_samples)
{
	struct profile_sample *s = NULL;
	struct profile *p = NULL;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_set_heap_types(p, 1), 0);
	for (int i = 0; i < 1000; i++) {
		uint32_t locs[3] = { i, i + 1, i + 2 };
		int64_t values[PROFILE_VALUE_CNT] = { i, 2 * i, 3 * i, 4 * i };
		struct profile_label labels[2] = {
			{ .key_str = profile_str(p, "pid"), .num = 42 },
			{ .key_str = profile_str(p, "thread"), .str = profile_str(p, "main") },
		};

		assert_int_equal(profile_add_sample(p, locs, i % 4, values, labels, i % 3, &s), 0);
		assert_int_equal(s->loc_cnt, i % 4);
	}
	assert_int_equal(p->samples.cnt, 1000);
	for (int i = 0; i < 1000; i++) {
		const char *thread;

		s = &p->samples.data[i];
		thread = profile_sample_label(p, s, "thread");
		assert_int_equal(p->values.data[s->value_first + PROFILE_INUSE_SPACE], 4 * i);
		for (uint32_t k = 0; k < s->loc_cnt; k++)
			assert_int_equal(p->sample_locs.data[s->loc_first + k], i + k);
		assert_int_equal(!!thread, i % 3 == 2);
		if (thread)
			assert_string_equal(thread, "main");
		assert_null(profile_sample_label(p, s, "pid")); /* a number has no text */
		assert_false(s->has_error);
	}
	profile_free(p);
}

TEST(test_comments)
{
	struct profile *p = NULL;
	char longer[4000];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_comment(p, "lost: %d %s", 3, "bad\xff"), 0);
	assert_int_equal(profile_comment(p, "%s", longer), 0);
	assert_int_equal(p->comments.cnt, 2);
	assert_string_equal(profile_text(p, p->comments.data[0]), "lost: 3 bad\xef\xbf\xbd");
	assert_string_equal(profile_text(p, p->comments.data[1]), longer);
	profile_free(p);
}

RUN_TESTS()
