/* SPDX-License-Identifier: MIT */
/* test_strset.c - interned strings: one id per text, stable addresses, valid UTF-8. */
#include "unit.h"

#include "base/strset.h"
#include "met_keys.h"

#define BAD "\xef\xbf\xbd"

TEST(test_ids)
{
	struct strset *s = NULL;
	const char *first;
	char text[32];

	assert_int_equal(strset_new(&s), 0);
	assert_int_equal(strset_add(s, ""), 0);
	assert_int_equal(strset_add(s, "a"), 1);
	assert_int_equal(strset_add(s, "ab"), 2);
	assert_int_equal(strset_add_n(s, "abc", 1), 1);
	assert_int_equal(strset_add_n(s, "abc", 0), 0);
	first = strset_get(s, 1);
	for (int i = 0; i < 20000; i++) {
		snprintf(text, sizeof(text), "string %d", i);
		assert_int_equal(strset_add(s, text), i + 3);
	}
	assert_int_equal(strset_add(s, "string 12345"), 12348);
	assert_int_equal(strset_cnt(s), 20003);
	assert_ptr_equal(strset_get(s, 1), first);
	assert_string_equal(first, "a");
	assert_string_equal(strset_get(s, 20003), "");
	assert_string_equal(strset_get(s, -1), "");
	strset_free(s);
	strset_free(NULL);
}

TEST(test_longer_than_a_block)
{
	size_t bytes = 200000;
	char *text = unit_keep(malloc(bytes + 1), free);
	struct strset *s = NULL;

	memset(text, 'x', bytes);
	text[bytes] = '\0';
	assert_int_equal(strset_new(&s), 0);
	assert_int_equal(strset_add(s, text), 1);
	assert_int_equal(strset_add(s, "short"), 2);
	assert_string_equal(strset_get(s, 1), text);
	assert_int_equal(strset_add(s, text), 1);
	strset_free(s);
}

TEST(test_utf8)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "plain", "plain" },
		{ "gr\xc3\xbc\xc3\x9f"
		  "e \xe2\x82\xac \xf0\x9f\x98\x80",
		  "gr\xc3\xbc\xc3\x9f"
		  "e \xe2\x82\xac \xf0\x9f\x98\x80" },
		{ "a\xff"
		  "b",
		  "a" BAD "b" },
		{ "\x80", BAD },
		{ "cut \xe2\x82", "cut " BAD BAD },
		{ "\xc3(", BAD "(" },
		{ "\xc0\xaf", BAD BAD }, /* overlong */
		{ "\xe0\x80\x80", BAD BAD BAD },
		{ "\xf0\x80\x80\x80", BAD BAD BAD BAD },
		{ "\xed\xa0\x80", BAD BAD BAD }, /* surrogate */
		{ "\xf4\x90\x80\x80", BAD BAD BAD BAD }, /* beyond U+10FFFF */
		{ "\xf5\x80\x80\x80", BAD BAD BAD BAD },
		{ "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf" },
	};
	struct strset *s = NULL;

	assert_int_equal(strset_new(&s), 0);
	each_case(c, cases)
		assert_string_equal(strset_get(s, strset_add(s, c->in)), c->out);
	/* different input, the same valid text: the same id */
	assert_int_equal(strset_add(s, "\xff"), strset_add(s, BAD));
	assert_string_equal(strset_get(s, strset_add_n(s, "a\0b", 3)), "a" BAD "b");
	strset_free(s);
}

TEST(test_keep)
{
	struct strset *s = NULL;
	const char *kept;

	assert_int_equal(strset_new(&s), 0);
	kept = strset_keep(s, "kept");
	assert_string_equal(kept, "kept");
	assert_ptr_equal(strset_keep(s, "kept"), kept);
	assert_ptr_equal(strset_get(s, strset_add(s, "kept")), kept);
	assert_string_equal(strset_keep(s, "\xff"), BAD);
	strset_free(s);
}

static bool is_text(uint64_t word)
{
	for (int i = 0; i < 8; i++, word >>= 8)
		if (!(word & 0x7f) || word & 0x80)
			return false;
	return true;
}

/* As in test_hmap.c: strings that a file chooses so that they meet. */
TEST(test_hostile_strings)
{
	const int cnt = 10000;
	struct strset *s = NULL;
	double begin_s;
	char text[9] = "";
	int left = cnt;

	assert_int_equal(strset_new(&s), 0);
	begin_s = cpu_seconds();
	for (uint64_t i = 1; left; i++) {
		uint64_t word = met_word(i, 8 * 0x9e3779b97f4a7c15ULL);

		if (!is_text(word))
			continue;
		memcpy(text, &word, 8);
		assert_int_equal(strset_add(s, text), cnt - left + 1);
		left--;
	}
	print_message("# %.3f s\n", cpu_seconds() - begin_s);
	assert_true(cpu_seconds() - begin_s < 1);
	strset_free(s);
}

RUN_TESTS()
