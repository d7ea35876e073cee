/* SPDX-License-Identifier: MIT */
/* test_nearest.c - mistyped names find the name that was meant, other words none. */
#include "unit.h"

#include "base/names.h"

TEST(counts_mistakes)
{
	static const struct {
		const char *a, *b;
		size_t want;
	} cases[] = {
		{ "", "", 0 },
		{ "", "abc", 3 },
		{ "record", "record", 0 },
		{ "recrod", "record", 1 }, /* swapped */
		{ "rcord", "record", 1 },
		{ "reccord", "record", 1 },
		{ "recard", "record", 1 },
		{ "erocrd", "record", 2 },
		{ "report", "record", 2 },
		{ "ca", "abc", 3 }, /* a swapped pair is not edited again */
		{ "kitten", "sitting", 3 },
		{ "abcdef", "ghijkl", 6 },
	};

	each_case(c, cases) {
		size_t one = edit_distance(c->a, c->b);
		size_t other = edit_distance(c->b, c->a);

		if (one != c->want || other != c->want)
			fail_msg("'%s' and '%s': %zu and %zu", c->a, c->b, one, other);
	}
}

TEST(finds_what_was_meant)
{
	static const char *const names[] = { "record", "report", "doctor" };
	static const struct {
		const char *word;
		size_t want;
	} cases[] = {
		{ "record", 0 }, { "recrod", 0 }, { "reprot", 1 }, { "docter", 2 },  { "dr", 3 },
		{ "", 3 },	 { "x", 3 },	  { "rec", 3 },	   { "records", 0 }, { "serve", 3 },
	};

	each_case(c, cases)
		if (nearest_name(c->word, names, 3) != c->want)
			fail_msg("'%s': %zu", c->word, nearest_name(c->word, names, 3));
}

TEST(long_words_are_far_from_everything)
{
	char word[NEAREST_WORD_CAP + 2], other[NEAREST_WORD_CAP + 1];

	memset(word, 'a', sizeof(word));
	memset(other, 'b', sizeof(other));
	word[sizeof(word) - 1] = 0;
	other[sizeof(other) - 1] = 0;
	assert_true(edit_distance(word, "a") == SIZE_MAX);
	assert_true(edit_distance("a", word) == SIZE_MAX);
	word[sizeof(word) - 2] = 0;
	assert_int_equal(edit_distance(word, other), NEAREST_WORD_CAP);
}

RUN_TESTS()
