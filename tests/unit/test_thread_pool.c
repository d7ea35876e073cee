/* SPDX-License-Identifier: MIT */
/* test_thread_pool.c - threads of a pool get one name, others keep theirs, rooms may be small. */
#include "unit.h"

#include "profile/thread_pool.h"

TEST(numbers_become_stars)
{
	static const char *const cases[][2] = {
		{ "rocksdb:low3", "rocksdb:low*" },
		{ "rocksdb:high", "rocksdb:high" },
		{ "worker-12", "worker-*" },
		{ "worker", "worker" },
		{ "worker_007", "worker_*" },
		{ "pool-2-thread-17", "pool-*-thread-*" },
		{ "h2-main", "h2-main" },
		{ "x264enc", "x264enc" },
		{ "h2-4", "h2-*" },
		{ "v8:worker 3", "v8:worker *" },
		{ "3-a", "*-a" },
		{ "12", "*" },
		{ "", "" },
		{ "conn 1.2", "conn *.*" },
		{ "-", "-" },
		{ "\xc3\xa4"
		  "3\xc3\xa4-4",
		  "\xc3\xa4"
		  "3\xc3\xa4-*" },
	};
	char got[32], *exact;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int is_pool = strcmp(cases[i][0], cases[i][1]) != 0;

		if (thread_pool_name(cases[i][0], got, sizeof(got)) != is_pool ||
		    strcmp(got, cases[i][1]) != 0)
			fail_msg("'%s': '%s'", cases[i][0], got);
		/* a pool is a pool of itself, and its room may be exact */
		exact = test_malloc(strlen(cases[i][1]) + 1);
		assert_int_equal(thread_pool_name(cases[i][0], exact, strlen(got) + 1), is_pool);
		assert_int_equal(thread_pool_name(got, exact, strlen(got) + 1), 0);
		assert_string_equal(exact, got);
		assert_int_equal(thread_pool_name(cases[i][0], exact, strlen(got)), -ENOSPC);
		test_free(exact);
	}
}

TEST(globs_name_pools)
{
	static const char *const cases[][3] = {
		{ "rocksdb:*,worker-*", "rocksdb:low3", "rocksdb:*" },
		{ "rocksdb:*,worker-*", "worker-1", "worker-*" },
		{ "rocksdb:*,worker-*", "main-1", "main-1" },
		{ "*-1,main*", "main-1", "*-1" }, /* the first */
		{ "main", "main", "main" },
		{ "a", "ab", "ab" },
	};
	char got[32];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *want = cases[i][2];

		assert_true(thread_pool_name_in(cases[i][0], cases[i][1], got, sizeof(got)) >= 0);
		assert_string_equal(got, want);
		assert_int_equal(thread_pool_name_in(cases[i][0], cases[i][1], got, strlen(want)),
				 -ENOSPC);
	}
	assert_int_equal(thread_pool_name_in("w*", "w1", got, sizeof(got)), 1);
	assert_int_equal(thread_pool_name_in("w*", "x1", got, sizeof(got)), 0);
}

RUN_TESTS()
