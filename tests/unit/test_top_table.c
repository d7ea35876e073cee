/* SPDX-License-Identifier: MIT */
/* The rows that heaptap top draws are those of the report: names, sums, what is not known. */
#include "unit.h"

#include "made_profile.h"
#include "profile/profile.h"
#include "record/top_priv.h"

static struct profile *p; /* of the test that runs */
static struct top_table *t;

static void add(const uint32_t *locs, size_t cnt, const char *key, const char *value, int64_t bytes)
{
	const struct profile_label label = { .key_str = profile_str(p, key),
					     .str = profile_str(p, value) };

	assert_int_equal(profile_add_sample(p, locs, cnt, (int64_t[]){ 2, 2 * bytes, 1, bytes },
					    &label, 1, NULL),
			 0);
}

static int set_up(void **state)
{
	t = NULL;
	return profile_new(&p);
}

static int tear_down(void **state)
{
	top_table_free(t);
	profile_free(p);
	return 0;
}

static const struct top_row *make(enum top_what what, size_t want_cnt)
{
	top_table_free(t);
	t = NULL;
	assert_int_equal(top_table_of_profile(p, what, &t), 0);
	assert_int_equal(t->rows.cnt, want_cnt);
	return t->rows.data;
}

TEST_WITH(stacks_have_places_callers_and_frames, set_up, tear_down)
{
	const struct top_row *row;
	char buf[TOP_FRAME_BUF];
	uint32_t put, run, main_frame;

	assert_int_equal(profile_set_heap_types(p, 1), 0);
	put = made_frame(p, "put", 3);
	run = made_frame(p, "run", 5);
	main_frame = made_frame(p, "main", 7);
	add((uint32_t[]){ put, run, main_frame }, 3, "thread", "a", 100);
	add((uint32_t[]){ run, main_frame }, 2, "thread", "b", 400);
	row = make(TOP_STACKS, 2);
	assert_string_equal(row[0].name, "run app.c:5");
	assert_string_equal(row[0].tail, "< main app.c:7");
	assert_string_equal(row[1].name, "put app.c:3");
	assert_string_equal(row[1].tail, "< run app.c:5 < main app.c:7");
	assert_string_not_equal(row[0].key, row[1].key);
	assert_true(row[0].held_bytes == 400 && row[0].alloc_bytes == 800 && row[0].blocks == 1);
	assert_true(t->total.held_bytes == 500);
	assert_string_equal(top_table_frame(t, 1, 0, buf), "put app.c:3");
	assert_string_equal(top_table_frame(t, 1, 2, buf), "main app.c:7");
	assert_null(top_table_frame(t, 1, 3, buf));
}

/* A runtime compiles a function again when it has run often: it is the same function. */
TEST_WITH(a_function_compiled_again_is_one_row, set_up, tear_down)
{
	static const char *const names[][2] = {
		{ "LazyCompile:~put", "Function:^run" },
		{ "LazyCompile:*put", "JS:*run" },
		{ "void [app] Store::Put()[QuickJitted]",
		  "void [app] App::Run()[OptimizedTier1OSR]" },
		{ "void [app] Store::Put()[OptimizedTier1]", "void [app] App::Run()[Optimized]" },
	};
	const struct top_row *row;

	assert_int_equal(profile_set_heap_types(p, 1), 0);
	for (size_t i = 0; i < 4; i++)
		add((uint32_t[]){ made_frame(p, names[i][0], i < 2 ? 3 : 0),
				  made_frame(p, names[i][1], i < 2 ? 5 : 0) },
		    2, "thread", "a", 100 + (int64_t)(i / 2));
	row = make(TOP_STACKS, 2);
	assert_string_equal(row[0].key, "void [app] Store::Put() < void [app] App::Run()");
	assert_true(row[0].held_bytes == 202);
	assert_string_equal(row[1].key, "put app.c:3 < run app.c:5");
	assert_string_equal(row[1].name, "LazyCompile:*put app.c:3"); /* as it is */
	assert_true(row[1].held_bytes == 200);
}

TEST_WITH(scopes_are_a_tree, set_up, tear_down)
{
	const struct top_row *row;

	assert_int_equal(profile_set_heap_types(p, 1), 0);
	add(NULL, 0, "scope", "Top/A", 100);
	add(NULL, 0, "scope", "Top/B", 300);
	row = make(TOP_SCOPES, 3);
	assert_string_equal(row[0].name, "Top");
	assert_int_equal(row[0].depth, 0);
	assert_true(row[0].held_bytes == 400);
	assert_string_equal(row[1].key, "Top/B");
	assert_string_equal(row[1].name, "B");
	assert_int_equal(row[1].depth, 1);
	assert_true(row[2].held_bytes == 100);
}

TEST_WITH(unknown_is_not_zero, set_up, tear_down)
{
	const struct top_row *row;

	assert_int_equal(profile_set_heap_types(p, 1), 0);
	add(NULL, 0, "thread", "a", 100);
	p->recording = RECORDING_NONE;
	p->recording.is_known = true;
	p->recording.inuse = RECORDING_INUSE_UNKNOWN;
	row = make(TOP_THREADS, 1);
	assert_true(isnan(row->held_bytes) && isnan(row->blocks) && isnan(row->held_variance));
	assert_true(row->alloc_bytes == 200);
	assert_string_equal(row->error, "");
}

TEST_WITH(profiles_without_values_are_refused, set_up, tear_down)
{
	assert_int_equal(top_table_of_profile(p, TOP_STACKS, &t), -EINVAL);
}

RUN_TESTS()
