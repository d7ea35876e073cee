/* SPDX-License-Identifier: MIT */
/* test_option_args.c - what a command line says, and what it does wrong is said in one sentence that helps. */
#include "unit.h"

#include "cmd/option.h"

#define ARGV_CAP 16

static const struct option_row rows[] = {
	{ .type = OPTION_HEADING, .help = "all" },
	{ .name = "duration", .letter = 'd', .type = OPTION_TEXT, .arg = "TIME", .help = "" },
	{ .name = "max-live", .type = OPTION_COUNT, .arg = "N", .help = "" },
	{ .name = "max-stacks", .type = OPTION_COUNT, .arg = "N", .help = "" },
	{ .name = "max-overhead", .type = OPTION_COUNT, .arg = "N", .help = "" },
	{ .name = "no-lines", .type = OPTION_FLAG, .help = "" },
	{ .name = "quiet", .letter = 'q', .type = OPTION_FLAG, .help = "" },
	{ .name = "json", .type = OPTION_ASK, .help = "" },
	{ .name = "frames",
	  .type = OPTION_COUNT,
	  .flags = OPTION_MAY_HAVE_VALUE,
	  .arg = "N",
	  .help = "" },
	{ .name = "group",
	  .type = OPTION_TEXT,
	  .flags = OPTION_MAY_HAVE_VALUE,
	  .arg = "LIST",
	  .help = "" },
	{ .name = "naive", .type = OPTION_FLAG, .flags = OPTION_HIDDEN, .help = "" },
	{ .name = "attach-mode",
	  .type = OPTION_TEXT,
	  .flags = OPTION_HIDDEN,
	  .arg = "MODE",
	  .help = "" },
};

/* "-q --max 3" apart at its blanks. */
static int split(char *line, char *argv[ARGV_CAP])
{
	int argc = 0;

	argv[argc++] = "command";
	for (char *word = strtok_r(line, " ", &line); word; word = strtok_r(NULL, " ", &line))
		argv[argc++] = word;
	argv[argc] = NULL;
	return argc;
}

struct told {
	size_t cnt;
	char text[600];
};

static void on_error(void *ctx, const char *text)
{
	struct told *told = ctx;

	told->cnt++;
	snprintf(told->text, sizeof(told->text), "%s", text);
}

/* seen: options and values, "|", operands. */
static int read_all(bool ends_at_operand, const char *line, char seen[256], struct told *told)
{
	const struct option_table table = { .rows = rows,
					    .cnt = sizeof(rows) / sizeof(*rows),
					    .ends_at_operand = ends_at_operand };
	char copy[256], *argv[ARGV_CAP];
	struct option_args args;
	struct option_given *g;
	size_t len = 0;
	int argc, err;

	*told = (struct told){ 0 };
	snprintf(copy, sizeof(copy), "%s", line);
	argc = split(copy, argv);
	err = option_read_args(&table, argc, argv, on_error, told, &args);
	vec_each(&args.given, g)
		len += (size_t)snprintf(seen + len, 256 - len, "%s%s%s ", g->row->name,
					g->text ? "=" : "", g->text ? g->text : "");
	len += (size_t)snprintf(seen + len, 256 - len, "|");
	for (size_t i = args.first; argv[i]; i++)
		len += (size_t)snprintf(seen + len, 256 - len, " %s", argv[i]);
	option_args_release(&args);
	return err;
}

static void assert_seen(bool ends_at_operand, const char *line, const char *want)
{
	struct told told;
	char seen[256];

	assert_int_equal(read_all(ends_at_operand, line, seen, &told), 0);
	assert_int_equal(told.cnt, 0);
	assert_string_equal(seen, want);
}

TEST(reads_as_getopt_does)
{
	assert_seen(true, "-qd 5 --dur=6 --max-live 3 --json --naive a -z",
		    "quiet duration=5 duration=6 max-live=3 json naive | a -z");
	assert_seen(false, "a -q b -- -z", "quiet | a b -z");
	assert_seen(false, "", "|");
}

/* A number may be a word of its own, unless a file has that name; a text has to be behind "=". */
TEST(values_may_be_left_out)
{
	assert_seen(false, "--frames", "frames |");
	assert_seen(false, "--frames=3 a", "frames=3 | a");
	assert_seen(false, "--frames 3 a", "frames=3 | a");
	assert_seen(false, "--frames a", "frames | a");
	assert_seen(false, "--frames -q", "frames quiet |");
	assert_seen(false, "--group 3", "group | 3");
	assert_seen(false, "--group=a,b --group=", "group=a,b group= |");
}

TEST(says_what_is_wrong)
{
	static const struct {
		const char *line, *want;
	} cases[] = {
		{ "--duratoin 5", "unknown option '--duratoin': did you mean --duration?" },
		{ "--duratoin=5", "unknown option '--duratoin': did you mean --duration?" },
		{ "-q --quite", "unknown option '--quite': did you mean --quiet?" },
		{ "--zzz", "unknown option '--zzz'" },
		{ "--naiev", "unknown option '--naiev'" }, /* hidden ones are not suggested */
		{ "--atach-mode x", "unknown option '--atach-mode'" },
		{ "--n", "unknown option '--n': did you mean --no-lines?" },
		{ "--max 5",
		  "option '--max' is ambiguous: --max-live, --max-stacks or --max-overhead" },
		{ "--max-=5",
		  "option '--max-' is ambiguous: --max-live, --max-stacks or --max-overhead" },
		{ "-z", "unknown option '-z'" },
		{ "-qzq", "unknown option '-z'" },
		{ "--quiet -zq", "unknown option '-z'" },
		{ "-j", "unknown option '-j'" },
		{ "-d", "option '-d' needs a value" },
		{ "-qd", "option '-d' needs a value" },
		{ "--duration", "option '--duration' needs a value" },
		{ "--max-st", "option '--max-stacks' needs a value" },
		{ "--quiet=3", "option '--quiet' takes no value" },
		{ "--json=3", "option '--json' takes no value" },
	};
	struct told told;
	char seen[256];

	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++)
		if (read_all(i % 2, cases[i / 2].line, seen, &told) != -EINVAL || told.cnt != 1 ||
		    strcmp(told.text, cases[i / 2].want))
			fail_msg("'%s': %s", cases[i / 2].line, told.text);
	assert_int_equal(read_all(true, "--zzz -y", seen, &told), -EINVAL);
	assert_int_equal(told.cnt, 2);
}

/* However long a word is, the sentence ends within its buffer. */
TEST(long_words_are_cut)
{
	char line[240], seen[256];
	struct told told;

	memset(line, 'a', sizeof(line));
	memcpy(line, "--", 2);
	line[sizeof(line) - 1] = '\0';
	assert_int_equal(read_all(false, line, seen, &told), -EINVAL);
	assert_true(!strncmp(told.text, "unknown option '--aaa", 21));
	assert_true(strlen(told.text) < 100);
}

RUN_TESTS()
