/* SPDX-License-Identifier: MIT */
/* One table of options: the command line, the file, which of them wins, help, and what is told. */
#include "unit.h"

#include "base/err.h"
#include "cmd/option.h"

struct settings {
	bool quiet;
	char *name, *test_only;
	struct texts words, list;
	enum { SLOW, FAST, FASTEST } pace;
	struct option_numbers numbers;
	uint64_t count, size, time_ns;
	double percent;
	struct option_limit limit;
};

static int check_lower(const char *text, struct err *why)
{
	for (; *text; text++) {
		if (*text >= 'A' && *text <= 'Z')
			return err_set(why, -EINVAL, "lower case is wanted");
	}
	return 0;
}

#define AT(member) offsetof(struct settings, member)

static const char *const paces[] = { "slow", "fast", "fastest", NULL };

/* What every row with a value has: its name, type, member, the word for its value, its help. */
#define ROW(name_, type_, member, arg_, help_) \
	.name = (name_), .type = OPTION_##type_, .at = AT(member), .arg = (arg_), .help = (help_)

static const struct option_row rows[] = {
	{ .type = OPTION_HEADING, .help = "what there is" },
	{ .name = "quiet", .letter = 'q', .type = OPTION_FLAG, .at = AT(quiet), .help = "hush" },
	{ ROW("name", TEXT, name, "NAME", "a name"), .letter = 'n', .value = "nobody",
	  .check = check_lower },
	{ ROW("word", TEXTS, words, "WORD", "may be repeated"), .flags = OPTION_UNSAID,
	  .check = check_lower },
	{ ROW("list", TEXTS, list, "LIST", "with commas"), .flags = OPTION_COMMAS },
	{ ROW("pace", CHOICE, pace, "PACE", "one of these"), .choices = paces },
	{ ROW("number", NUMBERS, numbers, "N", "may be repeated"), .min = 1 },
	{ ROW("count", COUNT, count, "N", "a number"), .value = "7", .min = 1, .max = 100 },
	{ ROW("size", SIZE, size, "SIZE", "a size"), .value = "64k", .flags = OPTION_MAY_HAVE_VALUE,
	  .max = 1ULL << 40 },
	{ ROW("time", TIME, time_ns, "TIME", "a time"), .value = "10s", .min = 1000000000 },
	{ ROW("percent", PERCENT, percent, "PCT", "a part"), .value = "5", .max = 100 },
	{ ROW("limit", LIMIT, limit, "PCT", "a limit"), .value = "25", .max = 99 },
	{ ROW("only-here", TEXT, test_only, "X", "not told"), .flags = OPTION_HIDDEN },
};
static const struct option_table table = { .rows = rows,
					   .cnt = sizeof(rows) / sizeof(*rows),
					   .ends_at_operand = true };

static const struct option_row *row_of(const char *name)
{
	for (size_t i = 0; i < table.cnt; i++)
		if (table.rows[i].name && !strcmp(table.rows[i].name, name))
			return &table.rows[i];
	fail_msg("no row %s", name);
	return NULL;
}

struct errors {
	size_t cnt;
	char text[8192];
};

static void on_error(void *ctx, const char *text)
{
	struct errors *e = ctx;
	size_t len = strlen(e->text);

	e->cnt++;
	snprintf(e->text + len, sizeof(e->text) - len, "%s\n", text);
}

#define ARGV_CAP 40

/* "x -q --name a" apart at its blanks. */
static int split(char *line, char *argv[ARGV_CAP])
{
	int argc = 0;

	for (char *at = line; *at && argc + 1 < ARGV_CAP;) {
		argv[argc++] = at;
		at += strcspn(at, " ");
		if (*at)
			*at++ = '\0';
	}
	argv[argc] = NULL;
	return argc;
}

/* Defaults, file and command line; either may be NULL. */
static int make(const char *file, const char *line, struct settings *s, struct errors *e)
{
	char copy[512], *argv[ARGV_CAP];
	struct option_args args = { 0 };
	int err, argc;

	*s = (struct settings){ 0 };
	*e = (struct errors){ 0 };
	snprintf(copy, sizeof(copy), "x %s", line ? line : "");
	argc = split(copy, argv);
	assert_int_equal(option_apply_defaults(&table, s), 0);
	err = option_read_args(&table, argc, argv, on_error, e, &args);
	if (!err && file)
		err = option_apply_file(&table, s, "f.toml", file, strlen(file), on_error, e, NULL);
	if (!err)
		err = option_apply_args(s, &args, on_error, e);
	option_args_release(&args);
	return err;
}

static void make_sound(const char *file, const char *line, struct settings *s)
{
	struct errors e;
	int err = make(file, line, s, &e);

	if (err)
		print_error("%s", e.text);
	assert_int_equal(err, 0);
	assert_int_equal(e.cnt, 0);
}

TEST(test_defaults)
{
	struct settings s;

	make_sound(NULL, NULL, &s);
	assert_false(s.quiet);
	assert_string_equal(s.name, "nobody");
	assert_null(s.test_only);
	assert_int_equal(s.words.cnt, 0);
	assert_int_equal(s.count, 7);
	assert_int_equal(s.size, 65536);
	assert_int_equal(s.pace, SLOW);
	assert_int_equal(s.time_ns, 10000000000);
	assert_true(s.percent == 5);
	assert_true(s.limit.percent == 25 && !s.limit.is_strict);
	option_release(&table, &s);
}

TEST(test_command_line)
{
	struct settings s;

	make_sound(
		NULL,
		"-qn ann --word=a --word b --number 1 --number 2 --count 3 --size=2m --time 1500ms "
		"--percent 0.5% --limit 40%! --only-here y --pace fast --list a,b --list c",
		&s);
	assert_true(s.quiet);
	assert_string_equal(s.name, "ann");
	assert_int_equal(s.words.cnt, 2);
	assert_string_equal(s.words.data[1], "b");
	assert_int_equal(s.numbers.cnt, 2);
	assert_int_equal(s.numbers.data[1], 2);
	assert_int_equal(s.count, 3);
	assert_int_equal(s.size, 2 << 20);
	assert_int_equal(s.time_ns, 1500000000);
	assert_true(s.percent == 0.5);
	assert_true(s.limit.percent == 40 && s.limit.is_strict);
	assert_string_equal(s.test_only, "y");
	assert_int_equal(s.pace, FAST);
	assert_int_equal(s.list.cnt, 3);
	assert_string_equal(s.list.data[1], "b");
	option_release(&table, &s);
	make_sound(NULL, "--percent off --limit off!", &s);
	assert_true(s.percent == 0 && s.limit.percent == 0 && !s.limit.is_strict);
	option_release(&table, &s);
	make_sound(NULL, "--size", &s); /* without a value */
	assert_int_equal(s.size, 0);
	option_release(&table, &s);
}

TEST(test_rest_of_line)
{
	char line[] = "x -q rest --name", *argv[ARGV_CAP];
	struct option_args args;
	struct errors e = { 0 };
	int argc = split(line, argv);

	assert_int_equal(option_read_args(&table, argc, argv, on_error, &e, &args), 0);
	assert_int_equal(args.first, 2);
	assert_string_equal(option_args_find(&args, "quiet"), "");
	assert_null(option_args_find(&args, "name"));
	option_args_release(&args);
}

static void assert_line_refused(const char *line, const char *what)
{
	struct settings s;
	struct errors e;
	int err = make(NULL, line, &s, &e);

	option_release(&table, &s);
	assert_int_equal(err, -EINVAL);
	if (e.cnt != 1 || !strstr(e.text, what))
		fail_msg("'%s': %s", line, e.text);
}

TEST(test_bad_command_line)
{
	assert_line_refused("--nmae x", "unknown option '--nmae': did you mean --name?");
	assert_line_refused("--only-hree x", "unknown option '--only-hree'\n"); /* hidden */
	assert_line_refused("--only", "'--only-here' needs a value"); /* getopt abbreviates */
	assert_line_refused("--name", "option '--name' needs a value");
	assert_line_refused("--count 0", "from 1 to 100");
	assert_line_refused("--count 101", "from 1 to 100");
	assert_line_refused("--count 5k", "a number");
	assert_line_refused("--count -5", "a number");
	assert_line_refused("--number 0", "at least 1");
	assert_line_refused("--size=5x", "a size such as 50m, from 0 to 1t");
	assert_line_refused("--size=2t", "from 0 to 1t");
	assert_line_refused("--time 10x", "a time");
	assert_line_refused("--time 1ms", "at least 1s");
	assert_line_refused("--percent 101", "from 0 to 100");
	assert_line_refused("--percent nan", "a percentage");
	assert_line_refused("--percent 5!", "a percentage");
	assert_line_refused("--limit 5!!", "such as 5, 0.5 or 5!, from 0 to 99");
	assert_line_refused("--limit !", "a percentage");
	assert_line_refused("--limit 100", "from 0 to 99");
	assert_line_refused("--percent 0x5", "a percentage");
	assert_line_refused("--percent 1e1", "a percentage");
	assert_line_refused("--percent .5", "a percentage");
	assert_line_refused("--percent 0.00001", "no less than 0.0001");
	assert_line_refused("--limit 1e1", "a percentage");
	assert_line_refused("--size=1e3", "a size");
	assert_line_refused("--time 1e1", "a time");
	assert_line_refused("--count 1e1", "a number");
	assert_line_refused("--name Ann", "bad value 'Ann' for --name: lower case is wanted");
	assert_line_refused("--pace slower", "for --pace: slow, fast or fastest");
	assert_line_refused("--list a,,b", "one of the list is empty");
	assert_line_refused("--word a --word B", "bad value for --word: lower case is wanted");
}

TEST(test_file)
{
	static const char file[] =
		"quiet = true\nname = 'ann'\nword = ['a', \"b\"]\nnumber = [1, 2]\n"
		"count = 3\nsize = 4096\ntime = \"2s\"\npercent = 0.5\npace = 'fast'\n";
	struct settings s;

	make_sound(file, NULL, &s);
	assert_true(s.quiet);
	assert_string_equal(s.name, "ann");
	assert_int_equal(s.words.cnt, 2);
	assert_int_equal(s.numbers.cnt, 2);
	assert_int_equal(s.count, 3);
	assert_int_equal(s.size, 4096);
	assert_int_equal(s.pace, FAST);
	assert_int_equal(s.time_ns, 2000000000);
	assert_true(s.percent == 0.5);
	option_release(&table, &s);
	make_sound("percent = '2.5%'\n", NULL, &s);
	assert_true(s.percent == 2.5);
	option_release(&table, &s);
	make_sound("limit = 40\npercent = 'off'\n", NULL, &s);
	assert_true(s.percent == 0);
	assert_true(s.limit.percent == 40 && !s.limit.is_strict);
	option_release(&table, &s);
	make_sound("limit = '2.5!'\n", NULL, &s);
	assert_true(s.limit.percent == 2.5 && s.limit.is_strict);
	option_release(&table, &s);
	make_sound("limit = 'off'\n", NULL, &s);
	assert_true(s.limit.percent == 0);
	option_release(&table, &s);
}

TEST(test_command_line_wins)
{
	static const char file[] = "name = 'ann'\nword = ['a', 'b']\ncount = 3\n";
	struct settings s;

	make_sound(file, "--word c --name ben", &s);
	assert_string_equal(s.name, "ben");
	assert_int_equal(s.words.cnt, 1); /* all that the file says of it is replaced */
	assert_string_equal(s.words.data[0], "c");
	assert_int_equal(s.count, 3);
	option_release(&table, &s);
}

/* All errors of a file, each with its line and key. */
TEST(test_bad_file)
{
	static const char file[] = "nmae = 'x'\n"
				   "count = '3'\n"
				   "count = 4\n"
				   "word = 'a'\n"
				   "name = ['a']\n"
				   "number = [1,\n 'a',\n 0]\n"
				   "size = '5x'\n"
				   "time = '1ms'\n"
				   "quiet = 1\n"
				   "only-here = 'x'\n"
				   "what there is = 1\n"
				   "percent = 101\n"
				   "pace = 'slower'\n";
	static const char *const want[] = {
		"f.toml:1: nmae: unknown key: did you mean name?",
		"f.toml:2: count: it is a string, and must be an integer",
		"f.toml:3: count: it was given in line 2",
		"f.toml:4: word: it must be strings in [ ]",
		"f.toml:5: name: it must be a string",
		"f.toml:7: number: it is a string, and must be integers",
		"f.toml:8: number: bad value '0': a number, at least 1",
		"f.toml:9: size: bad value '5x'",
		"f.toml:10: time: bad value '1ms'",
		"f.toml:11: quiet: it is an integer, and must be true or false",
		"f.toml:12: only-here: ",
		"f.toml:13: what: ",
		"f.toml:14: percent: bad value '101'",
		"f.toml:15: pace: bad value 'slower': slow, fast or fastest",
	};
	struct settings s;
	struct errors e;

	assert_int_equal(make(file, NULL, &s, &e), -EINVAL);
	each_case(c, want)
		if (!strstr(e.text, *c))
			fail_msg("not told: %s\n%s", *c, e.text);
	assert_int_equal(e.cnt, sizeof(want) / sizeof(*want));
	option_release(&table, &s);
}

/* What is printed is a file that gives the same settings. */
TEST(test_printed_settings)
{
	struct settings s, again;
	char *text;

	make_sound("name = \"it's \\\"\\n\"\nword = ['^\\d$', 'b\"']\nnumber = [5]\n",
		   "--size=3k --time 1500ms --percent 0.25 --limit 5! -q --pace fastest", &s);
	text = printed(out, option_print_settings(&table, &s, out));
	assert_says(text, "size = \"3k\"\n");
	assert_says(text, "time = \"1500ms\"\n");
	assert_says(text, "pace = \"fastest\"\n");
	assert_says(text, "limit = \"5!\"\n");
	assert_says(text, "word = ['^\\d$', 'b\"']\n");
	assert_omits(text, "only-here");
	make_sound(text, NULL, &again);
	for (size_t i = 0; i < table.cnt; i++)
		assert_true(option_is_equal(&table.rows[i], &s, &again));
	option_release(&table, &s);
	option_release(&table, &again);
}

TEST(test_equal_and_copy)
{
	static const char *const lines[] = { "-q",	    "--name ann",  "--word a",
					     "--number 2",  "--count 3",   "--size=1k",
					     "--time 2s",   "--percent 1", "--only-here x",
					     "--limit 25!", "--pace fast" };
	static const char *const names[] = { "quiet",	  "name",  "word", "number",
					     "count",	  "size",  "time", "percent",
					     "only-here", "limit", "pace" };
	struct settings a, b;

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		make_sound(NULL, NULL, &a);
		make_sound(NULL, lines[i], &b);
		for (size_t j = 0; j < sizeof(names) / sizeof(*names); j++)
			assert_int_equal(option_is_equal(row_of(names[j]), &a, &b), i != j);
		assert_int_equal(option_copy(row_of(names[i]), &a, &b), 0);
		assert_true(option_is_equal(row_of(names[i]), &a, &b));
		option_release(&table, &b);
		make_sound(NULL, NULL, &b);
		assert_int_equal(option_copy(row_of(names[i]), &a, &b), 0); /* and back */
		assert_true(option_is_equal(row_of(names[i]), &a, &b));
		option_release(&table, &a);
		option_release(&table, &b);
	}
}

TEST(test_help)
{
	char *text = printed(out, option_print_help(&table, out));

	assert_says(text, "\nwhat there is:\n");
	assert_says(text, "\n  -n, --name NAME    a name (default: nobody)\n");
	assert_says(text, "\n      --word WORD    may be repeated\n");
	assert_says(text, "\n      --size[=SIZE]  a size (default: 64k)\n");
	assert_omits(text, "only-here");
	for (const char *at = text; *at; at += strcspn(at, "\n") + 1)
		assert_true(strcspn(at, "\n") <= 98);
}

RUN_TESTS()
