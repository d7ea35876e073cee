/* SPDX-License-Identifier: MIT */
/* test_err.c - an error's words: what is written, what is cut, and the code that comes back. */
#include "unit.h"

#include "base/err.h"

TEST(text_and_code)
{
	struct err err = { .text = "of before", .offset = 1, .line = 2 };

	assert_int_equal(err_set(&err, -EINVAL, "no %s of %d", "name", 7), -EINVAL);
	assert_string_equal(err.text, "no name of 7");
	/* They are of the text that was there. */
	assert_int_equal(err.offset, 0);
	assert_int_equal(err.line, 0);
	assert_int_equal(err_set(&err, 0, "shorter"), 0);
	assert_string_equal(err.text, "shorter");
}

TEST(with_words_of_the_system)
{
	struct err err;

	errno = EIO; /* it is the code that counts */
	assert_int_equal(err_set_os(&err, -ENOENT, "cannot read '%s'", "/x"), -ENOENT);
	assert_string_equal(err.text, "cannot read '/x': No such file or directory");
}

TEST(more_behind_it)
{
	struct err err;

	err_set(&err, 0, "%s", "a");
	err_add(&err, "%s%s", ", ", "b");
	err_add(&err, " or %c", 'c');
	assert_string_equal(err.text, "a, b or c");
}

TEST(too_long)
{
	static char name[ERR_BYTES + 100];
	struct {
		struct err err;
		char behind;
	} s = { .behind = 'x' };

	memset(name, 'n', sizeof(name) - 1);
	assert_int_equal(err_set(&s.err, -ENAMETOOLONG, "%s", name), -ENAMETOOLONG);
	assert_int_equal(strlen(s.err.text), ERR_BYTES - 1);
	/* What is added finds no room. */
	err_add(&s.err, "%s", "more");
	assert_int_equal(strlen(s.err.text), ERR_BYTES - 1);
	assert_int_equal(err_set_os(&s.err, -ENOENT, "%s", name), -ENOENT);
	assert_int_equal(strlen(s.err.text), ERR_BYTES - 1);
	assert_int_equal(s.err.text[ERR_BYTES - 2], 'n');
	assert_int_equal(s.err.offset, 0);
	assert_int_equal(s.behind, 'x');
}

/* Any path with what is said of it. */
TEST(longest_path)
{
	static char path[PATH_MAX];
	struct err err;
	size_t len;

	memset(path, 'p', sizeof(path) - 1);
	err_set_os(&err, -EACCES, "cannot write '%s'", path);
	len = strlen(err.text);
	assert_string_equal(err.text + len - strlen("p': Permission denied"),
			    "p': Permission denied");
}

TEST(nobody_wants_it)
{
	assert_int_equal(err_set(NULL, -EPERM, "%d", 1), -EPERM);
	assert_int_equal(err_set_os(NULL, -EACCES, "%d", 1), -EACCES);
	err_add(NULL, "%d", 1);
}

RUN_TESTS()
