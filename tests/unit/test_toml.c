/* SPDX-License-Identifier: MIT */
/* What is read of a configuration file, and what is refused, with line and key. */
#include "unit.h"

#include "cmd/toml.h"

struct errors {
	size_t cnt;
	char text[4096];
};

static void on_error(void *ctx, unsigned line, const char *key, const char *what)
{
	struct errors *e = ctx;
	size_t len = strlen(e->text);

	e->cnt++;
	snprintf(e->text + len, sizeof(e->text) - len, "%u:%s:%s\n", line, key, what);
}

static void parse(const char *text, struct toml_doc *doc)
{
	struct errors e = { 0 };
	int err = toml_parse(text, strlen(text), on_error, &e, doc);

	if (err)
		print_error("%s", e.text);
	assert_int_equal(err, 0);
	assert_int_equal(e.cnt, 0);
}

static const struct toml_value *only_value(const char *text, struct toml_doc *doc)
{
	parse(text, doc);
	assert_int_equal(doc->entries.cnt, 1);
	assert_false(doc->entries.data[0].is_array);
	assert_int_equal(doc->entries.data[0].values.cnt, 1);
	return &doc->entries.data[0].values.data[0];
}

static void assert_value(const char *text, enum toml_type type, const char *want)
{
	struct toml_doc doc;
	const struct toml_value *v = only_value(text, &doc);

	assert_int_equal(v->type, type);
	assert_string_equal(v->text, want);
	toml_release(&doc);
}

TEST(test_values)
{
	assert_value("a = \"x\"", TOML_STRING, "x");
	assert_value("a=\"\"", TOML_STRING, "");
	assert_value("a = '^\\d+\"'", TOML_STRING, "^\\d+\"");
	assert_value("a = \"\\\\ \\\" \\t\\n\\u00e9\\U0001F600\" # c", TOML_STRING,
		     "\\ \" \t\n\xc3\xa9\xf0\x9f\x98\x80");
	assert_value("a = \"# no comment\"", TOML_STRING, "# no comment");
	assert_value("a = 12_000", TOML_INTEGER, "12000");
	assert_value("a = +5", TOML_INTEGER, "5");
	assert_value("a = -0", TOML_INTEGER, "-0");
	assert_value("a = 0.5", TOML_FLOAT, "0.5");
	assert_value("a = 1e-3", TOML_FLOAT, "1e-3");
	assert_value("a = true", TOML_BOOL, "true");
	assert_value("\xef\xbb\xbf a = false\r\n", TOML_BOOL, "false");
}

TEST(test_file)
{
	static const char text[] = "# what a file looks like\n"
				   "\n"
				   "listen-at = \"x\"\r\n"
				   "list = [ \"a\", # first\n"
				   "\t'b',\n"
				   "  ]\n"
				   "none = []\n"
				   "pids = [1,2]";
	struct toml_doc doc;

	parse(text, &doc);
	assert_int_equal(doc.entries.cnt, 4);
	assert_string_equal(doc.entries.data[0].key, "listen-at");
	assert_int_equal(doc.entries.data[0].line, 3);
	assert_true(doc.entries.data[1].is_array);
	assert_int_equal(doc.entries.data[1].values.cnt, 2);
	assert_string_equal(doc.entries.data[1].values.data[1].text, "b");
	assert_int_equal(doc.entries.data[1].values.data[1].line, 5);
	assert_true(doc.entries.data[2].is_array);
	assert_int_equal(doc.entries.data[2].values.cnt, 0);
	assert_int_equal(doc.entries.data[3].values.cnt, 2);
	assert_int_equal(doc.entries.data[3].line, 8);
	toml_release(&doc);
	parse("", &doc);
	assert_int_equal(doc.entries.cnt, 0);
	toml_release(&doc);
}

static void assert_refused(const char *text, const char *line_key, const char *what)
{
	struct errors e = { 0 };
	struct toml_doc doc;
	int err = toml_parse(text, strlen(text), on_error, &e, &doc);

	toml_release(&doc);
	assert_int_equal(err, -EINVAL);
	if (e.cnt != 1 || strncmp(e.text, line_key, strlen(line_key)) || !strstr(e.text, what))
		fail_msg("'%s': %zu errors, %s", text, e.cnt, e.text);
}

TEST(test_refused)
{
	assert_refused("a", "1:a:", "'='");
	assert_refused("a b = 1", "1:a:", "'='");
	assert_refused("\n\n= 1", "3::", "key = value");
	assert_refused("\"a\" = 1", "1::", "key = value");
	assert_refused("a =", "1:a:", "missing");
	assert_refused("a = # 1", "1:a:", "missing");
	assert_refused("a = x", "1:a:", "quotes");
	assert_refused("a = truely", "1:a:", "quotes");
	assert_refused("a = 64k", "1:a:", "with a unit");
	assert_refused("a = 0x10", "1:a:", "not a number");
	assert_refused("a = 010", "1:a:", "begin with 0");
	assert_refused("a = 1__0", "1:a:", "'_'");
	assert_refused("a = 1_", "1:a:", "'_'");
	assert_refused("a = 1.", "1:a:", "digits");
	assert_refused("a = -", "1:a:", "digits");
	assert_refused("a = .5", "1:a:", "not a value");
	assert_refused("a = inf", "1:a:", "not a value");
	assert_refused("a = 2024-01-01", "1:a:", "not a number");
	assert_refused("a = \"x", "1:a:", "does not end");
	assert_refused("a = \"x\\\"", "1:a:", "does not end");
	assert_refused("a = 'x\nb = 1", "1:a:", "does not end");
	assert_refused("a = \"\"\"x\"\"\"", "1:a:", "several lines");
	assert_refused("a = \"\\d\"", "1:a:", "backslash");
	assert_refused("a = \"\\u12\"", "1:a:", "hexadecimal");
	assert_refused("a = \"\\u0000\"", "1:a:", "not a valid character");
	assert_refused("a = \"\\ud800\"", "1:a:", "not a valid character");
	assert_refused("a = 1 2", "1:a:", "comment");
	assert_refused("a = \"x\" y", "1:a:", "comment");
	assert_refused("a = 1\na = 2", "2:a:", "line 1");
	assert_refused("a.b = 1", "1:a:", "dotted");
	assert_refused("[a]\n", "1::", "tables");
	assert_refused("a = {b = 1}", "1:a:", "inline");
	assert_refused("a = [[1]]", "1:a:", "array");
	assert_refused("a = [1 2]", "1:a:", "','");
	assert_refused("a = [,]", "1:a:", "not a value");
	assert_refused("a = [1,\n# no end\n", "3:a:", "']'");
	assert_refused("a = \"\xff\"", "1::", "UTF-8");
	assert_refused("a = 1\nb = \"\xc0\xaf\"", "2::", "UTF-8");
	assert_refused("a = \"\x01\"", "1::", "control");
}

/* Every key that is wrong is told, and the sound ones are read. */
TEST(test_all_errors)
{
	static const char text[] = "a = x\n"
				   "b = 1\n"
				   "c = [ 1,\n"
				   "  zz,\n"
				   "  3 ]\n"
				   "d = [ 1\n"
				   "e = \"\n"
				   "f = true\n";
	struct errors e = { 0 };
	struct toml_doc doc;

	assert_int_equal(toml_parse(text, strlen(text), on_error, &e, &doc), -EINVAL);
	assert_int_equal(e.cnt, 4);
	assert_says(e.text, "1:a:");
	assert_says(e.text, "4:c:");
	assert_says(e.text, "7:d:");
	assert_says(e.text, "7:e:");
	assert_int_equal(doc.entries.cnt, 2);
	assert_string_equal(doc.entries.data[0].key, "b");
	assert_string_equal(doc.entries.data[1].key, "f");
	toml_release(&doc);
}

/* The text is bytes with a length: nothing is read past its end. */
TEST(test_cut_short)
{
	static const char text[] = "a = [ \"x\\u00e9\", 12_0, 1.5e3, true ] # c\r\n";

	for (size_t bytes = 0; bytes < sizeof(text); bytes++) {
		struct errors e = { 0 };
		struct toml_doc doc;
		char *copy = test_malloc(bytes + 1);

		memcpy(copy + 1, text, bytes);
		toml_parse(copy + 1, bytes, on_error, &e, &doc);
		toml_release(&doc);
		test_free(copy);
	}
}

RUN_TESTS()
