/* SPDX-License-Identifier: MIT */
/* test_read_option.c - what a command line does wrong is said in one sentence that helps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/read_option.h"

#define ARGV_CAP 16

static const struct option longs[] = {
	{ "duration", required_argument, NULL, 'd' },
	{ "max-live", required_argument, NULL, 256 },
	{ "max-stacks", required_argument, NULL, 257 },
	{ "max-overhead", required_argument, NULL, 258 },
	{ "no-lines", no_argument, NULL, 259 },
	{ "quiet", no_argument, NULL, 'q' },
	{ "json", no_argument, NULL, 'j' }, /* without a letter */
	{ "naive", no_argument, NULL, READ_OPTION_HIDDEN },
	{ "attach-mode", required_argument, NULL, READ_OPTION_HIDDEN + 1 },
	{ NULL, 0, NULL, 0 },
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

/* Reads on until the end or until something is wrong. seen: all that was read, as numbers. */
static int read_all(const char *letters, const char *line, char seen[256], char *why)
{
	char copy[256], *argv[ARGV_CAP];
	int c, argc;

	snprintf(copy, sizeof(copy), "%s", line);
	argc = split(copy, argv);
	optind = 0;
	seen[0] = '\0';
	while ((c = read_option(argc, argv, letters, longs, why)) != -1 && c != '?')
		snprintf(seen + strlen(seen), 256 - strlen(seen), "%d ", c);
	return c;
}

static void reads_as_getopt_does(void **state)
{
	char seen[256], why[READ_OPTION_WHY_BYTES];

	(void)state;
	assert_int_equal(
		read_all("+:d:q", "-qd 5 --dur=5 --max-live 3 --json --naive a -z", seen, why), -1);
	assert_string_equal(seen, "113 100 100 256 106 65536 ");
	assert_int_equal(read_all(":d:q", "a -q b -- -z", seen, why), -1); /* permuted */
	assert_string_equal(seen, "113 ");
}

static void says_what_is_wrong(void **state)
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
	char seen[256], why[READ_OPTION_WHY_BYTES];

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		const char *letters = i % 2 ? "+:d:q" : ":d:q";

		if (read_all(letters, cases[i / 2].line, seen, why) != '?' ||
		    strcmp(why, cases[i / 2].want))
			fail_msg("'%s': %s", cases[i / 2].line, why);
	}
}

/* However long a word is, the sentence ends within its buffer. */
static void long_words_are_cut(void **state)
{
	char line[240], seen[256], why[READ_OPTION_WHY_BYTES];

	(void)state;
	memset(line, 'a', sizeof(line));
	memcpy(line, "--", 2);
	line[sizeof(line) - 1] = '\0';
	assert_int_equal(read_all(":d:q", line, seen, why), '?');
	assert_true(!strncmp(why, "unknown option '--aaa", 21));
	assert_true(strlen(why) < 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_as_getopt_does),
		cmocka_unit_test(says_what_is_wrong),
		cmocka_unit_test(long_words_are_cut),
	};

	return cmocka_run_group_tests_name("read_option", tests, NULL, NULL);
}
