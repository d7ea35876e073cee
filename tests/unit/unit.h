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

/* What a test has made, and what releases it when the test ends. */
static struct unit_made {
	void *what;
	void (*release)(void *what);
} * unit_made;
static size_t unit_made_cnt;

static inline void *unit_keep(void *what, void (*release)(void *what))
{
	unit_made = realloc(unit_made, (unit_made_cnt + 1) * sizeof(*unit_made));
	assert_non_null(unit_made);
	unit_made[unit_made_cnt++] = (struct unit_made){ what, release };
	return what;
}

static inline void unit_close(void *fd)
{
	close((int)(intptr_t)fd);
}

/* fd < 0: there is none. */
static inline int keep_fd(int fd)
{
	if (fd >= 0)
		unit_keep((void *)(intptr_t)fd, unit_close);
	return fd;
}

/* Before the test ends. */
static inline void unit_drop(const void *what)
{
	for (size_t i = unit_made_cnt; i-- > 0;) {
		struct unit_made made = unit_made[i];

		if (made.what != what)
			continue;
		memmove(unit_made + i, unit_made + i + 1, (--unit_made_cnt - i) * sizeof(made));
		made.release(made.what);
		return;
	}
	fail_msg("it is not kept");
}

static inline void unit_release(void)
{
	while (unit_made_cnt) {
		const struct unit_made *made = &unit_made[--unit_made_cnt];

		made->release(made->what);
	}
	free(unit_made);
	unit_made = NULL;
}

/* The case that a test is at. */
static const char *unit_cases;
static size_t unit_case_idx;

static inline bool unit_case(const char *cases, size_t idx, size_t cnt)
{
	unit_cases = idx < cnt ? cases : NULL;
	unit_case_idx = idx;
	return unit_cases;
}

/* Of a test that passed or failed, which may have left a loop over cases. */
static inline int unit_end(void **state, CMFixtureFunction tear_down)
{
	if (unit_cases)
		print_message("# at %s[%zu]\n", unit_cases, unit_case_idx);
	unit_cases = NULL;
	unit_release();
	return tear_down ? tear_down(state) : 0;
}

/* For each element of the array `cases`, to which `c` points. A failure inside the loop names the case. */
#define each_case(c, cases)                       \
	for (__typeof__(&(cases)[0]) c = (cases); \
	     unit_case(#cases, (size_t)(c - (cases)), sizeof(cases) / sizeof((cases)[0])); c++)

/* TEST(name) { ... } is a test; TEST_WITH() one with what cmocka runs before and after it. */
#define TEST_WITH(fn, set_up, tear_down)                                                          \
	static void fn(void **state);                                                             \
	static void unit_run_##fn(void **state)                                                   \
	{                                                                                         \
		fn(state);                                                                        \
		unit_cases = NULL;                                                                \
	}                                                                                         \
	static int unit_end_##fn(void **state)                                                    \
	{                                                                                         \
		return unit_end(state, tear_down);                                                \
	}                                                                                         \
	__attribute__((constructor)) static void unit_add_##fn(void)                              \
	{                                                                                         \
		unit_add((struct CMUnitTest){ #fn, unit_run_##fn, set_up, unit_end_##fn, NULL }); \
	}                                                                                         \
	static void fn(void **state)
#define TEST(fn) TEST_WITH(fn, NULL, NULL)

/* The text has that part. Where it has not, both are shown. */
#define assert_says(text, part) unit_says(text, part, true, __FILE__, __LINE__)
#define assert_omits(text, part) unit_says(text, part, false, __FILE__, __LINE__)
static inline void unit_says(const char *text, const char *part, bool does, const char *file,
			     int line)
{
	if (text && !strstr(text, part) != does)
		return;
	print_error("%s '%s' in:\n%s\n", does ? "no" : "there is", part, text ? text : "(null)");
	_fail(file, line);
}

struct unit_print {
	char *text;
	size_t bytes;
	FILE *out;
};

static inline struct unit_print *unit_print_begin(void)
{
	struct unit_print *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->out = open_memstream(&p->text, &p->bytes);
	assert_non_null(p->out);
	return p;
}

static inline char *unit_print_end(struct unit_print *p)
{
	char *text;

	fclose(p->out);
	text = p->text;
	free(p);
	return unit_keep(text, free);
}

/* What the statement prints to the FILE `out`; it is there until the test ends. */
#define printed(out, ...)                                       \
	__extension__({                                         \
		struct unit_print *unit_p = unit_print_begin(); \
		FILE *out = unit_p->out;                        \
		__VA_ARGS__;                                    \
		unit_print_end(unit_p);                         \
	})

/* The macro of cmocka takes the size of an array. */
static inline int unit_main(const char *file, CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	return _cmocka_run_group_tests(file, unit_tests, unit_test_cnt, set_up, tear_down);
}

/* main() of a program that runs its tests and no more. */
#define RUN_TESTS_WITH(set_up, tear_down)                      \
	int main(void)                                         \
	{                                                      \
		return unit_main(__FILE__, set_up, tear_down); \
	}
#define RUN_TESTS() RUN_TESTS_WITH(NULL, NULL)

#endif
