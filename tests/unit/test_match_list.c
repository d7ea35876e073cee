/* SPDX-License-Identifier: MIT */
/* test_match_list.c - patterns, signs, the last one wins; what matched nothing is known. */
#include "unit.h"

#include "base/names.h"
#include "profile/match_list.h"

TEST(globs)
{
	static const struct {
		const char *pattern, *text;
		bool want;
	} cases[] = {
		{ "", "", true },
		{ "", "a", false },
		{ "a", "a", true },
		{ "a", "ab", false },
		{ "a", "", false },
		{ "*", "", true },
		{ "*", "abc", true },
		{ "a*", "abc", true },
		{ "a*", "ba", false },
		{ "*c", "abc", true },
		{ "*c", "abcd", false },
		{ "a*c", "abbc", true },
		{ "a*c", "ac", true },
		{ "a*c", "aca", false },
		{ "*a*b*", "xxaxxbxx", true },
		{ "*a*b*", "xbxa", false },
		{ "**a**", "a", true },
		{ "*aab", "aaaab", true },
		{ "*ab*ab", "abab", true },
		{ "*ab*ab", "aab", false },
		{ "?", "a", false },
		{ "[a]", "a", false },
		{ "a*", "A", false },
	};

	each_case(c, cases)
		if (glob_match(c->pattern, strlen(c->pattern), c->text, strlen(c->text)) != c->want)
			fail_msg("'%s' and '%s'", c->pattern, c->text);
}

TEST(the_last_match_decides)
{
	static const struct {
		const char *list, *path;
		bool want;
	} cases[] = {
		{ "Csd*,-Csd_Write", "Csd_Read", true },
		{ "Csd*,-Csd_Write", "Csd_Write", false },
		{ "Csd*,-Csd_Write", "Top/Csd_Read/x", true }, /* an ancestor's name */
		{ "Csd*,-Csd_Write", "Csd_Read/Csd_Write/x", false },
		{ "Csd*,-Csd_Write", "Usd", false },
		{ "-Csd_Write,Csd*", "Csd_Write", true }, /* later wins */
		{ "-Csd_Write,Csd*", "Usd", true }, /* begins with all */
		{ "-Csd_Write", "Usd", true },
		{ "-Csd_Write", "a/Csd_Write", false },
		{ "+A", "A", true },
		{ "+A", "B", false },
		{ "A,-B,+C", "A/B/C", true },
		{ "A,-B,+C", "A/B/D", false },
		{ "A/B", "A/B", true }, /* paths */
		{ "A/B", "A/B/C", true },
		{ "A/B", "X/A/B", false },
		{ "A/B", "A", false },
		{ "*/B", "X/A/B/C", true },
		{ "A/*", "A", false },
		{ "A/*", "A/x", true },
		{ "A\\/B", "A\\/B", true }, /* a name */
		{ "A\\/B", "A/B", false },
		{ "A\\/B", "X/A\\/B", true },
		{ "A*B", "A/B", false }, /* a name has no slash to match */
		{ "(none)", "(none)", true },
		{ "*", "", true },
	};

	each_case(c, cases) {
		struct match_list *m = NULL;

		assert_int_equal(match_list_new(c->list, &m), 0);
		if (match_list_test(m, c->path) != c->want)
			fail_msg("'%s' and '%s'", c->list, c->path);
		match_list_free(m);
	}
}

TEST(patterns_that_match_nothing_are_known)
{
	struct match_list *m = NULL;
	size_t pos = 0;

	assert_int_equal(match_list_new("A*,-AB,+X,-Y/Z", &m), 0);
	match_list_test(m, "AB"); /* A* has matched though it did not decide */
	match_list_test(m, "C");
	assert_string_equal(match_list_unused(m, &pos), "+X");
	assert_string_equal(match_list_unused(m, &pos), "-Y/Z");
	assert_null(match_list_unused(m, &pos));
	match_list_free(m);
	match_list_free(NULL);
}

TEST(empty_patterns_are_refused)
{
	static const char *const cases[] = { "", "A,", ",A", "A,,B", "-", "A,+" };
	struct match_list *m = NULL;

	each_case(c, cases)
		assert_int_equal(match_list_new(*c, &m), -EINVAL);
	assert_null(m);
}

RUN_TESTS()
