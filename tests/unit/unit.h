/* SPDX-License-Identifier: MIT */
/*
 * unit.h - what every test with cmocka begins with: the C library's common headers, cmocka's, and TEST().
 *
 * A test registers itself where it is written, as in the kernel's kselftest_harness.h, so no list at the end of the file
 * can lack it. Tests run in the order of the file.
 */
#ifndef HT_TESTS_UNIT_H
#define HT_TESTS_UNIT_H

#include "base/std.h"

#include <setjmp.h>

#include <cmocka.h>

/* cmocka hands each test a state, which most have no use for. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define UNIT_TESTS_CAP 64
static struct CMUnitTest unit_tests[UNIT_TESTS_CAP];
static size_t unit_test_cnt;

/* Before main(), so that a test that does not fit ends the program. */
static inline void unit_add(struct CMUnitTest test)
{
	if (unit_test_cnt == UNIT_TESTS_CAP)
		abort();
	unit_tests[unit_test_cnt++] = test;
}

/* TEST(name) { ... } is a test; TEST_WITH() one with what cmocka runs before and after it. */
#define TEST_WITH(fn, set_up, tear_down)                                      \
	static void fn(void **state);                                         \
	__attribute__((constructor)) static void unit_add_##fn(void)               \
	{                                                                     \
		unit_add((struct CMUnitTest){ #fn, fn, set_up, tear_down, NULL }); \
	}                                                                     \
	static void fn(void **state)
#define TEST(fn) TEST_WITH(fn, NULL, NULL)

/* The macro of cmocka takes the size of an array. */
static inline int run_tests(const char *file, CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	return _cmocka_run_group_tests(file, unit_tests, unit_test_cnt, set_up, tear_down);
}

/* main() of a program that runs its tests and no more. */
#define RUN_TESTS_WITH(set_up, tear_down)                        \
	int main(void)                                           \
	{                                                        \
		return run_tests(__FILE__, set_up, tear_down); \
	}
#define RUN_TESTS() RUN_TESTS_WITH(NULL, NULL)

#endif
