/* SPDX-License-Identifier: MIT */
/* read_option.c - see read_option.h. */
#include "config/read_option.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

#define NAMES_CAP 64 /* of one command; the rest are not suggested */

struct names {
	const char *of[NAMES_CAP];
	size_t cnt;
};

/* Those that may be suggested and begin with the first len characters of text. */
static void find_names(const struct option *longs, const char *text, size_t len, struct names *ret)
{
	ret->cnt = 0;
	for (; longs->name && ret->cnt < NAMES_CAP; longs++)
		if (longs->val < READ_OPTION_HIDDEN && !strncmp(longs->name, text, len))
			ret->of[ret->cnt++] = longs->name;
}

/* "--max-live, --max-overhead or --max-stacks" */
static void append_names(const struct names *names, char *why)
{
	for (size_t i = 0; i < names->cnt; i++) {
		size_t used = strlen(why);

		snprintf(why + used, READ_OPTION_WHY_BYTES - used, "%s--%s",
			 !i		    ? "" :
			 i + 1 < names->cnt ? ", " :
					      " or ",
			 names->of[i]);
	}
}

/* getopt knows no such long option, or more than one that begins like that. */
static void say_unknown(const struct option *longs, const char *word, char *why)
{
	char name[NEAREST_WORD_CAP + 1];
	struct names names;
	size_t i;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	find_names(longs, name, strlen(name), &names);
	if (names.cnt > 1) {
		snprintf(why, READ_OPTION_WHY_BYTES, "option '--%s' is ambiguous: ", name);
		append_names(&names, why);
		return;
	}
	if (!names.cnt) {
		find_names(longs, "", 0, &names);
		i = nearest_name(name, names.of, names.cnt);
		names.of[0] = i < names.cnt ? names.of[i] : NULL;
	}
	snprintf(why, READ_OPTION_WHY_BYTES, "unknown option '--%s'%s%s%s", name,
		 names.of[0] ? ": did you mean --" : "", names.of[0] ? names.of[0] : "",
		 names.of[0] ? "?" : "");
}

static const char *long_name(const struct option *longs, int val)
{
	for (; longs->name; longs++)
		if (longs->val == val)
			return longs->name;
	return "";
}

static void explain(int c, const char *word, const struct option *longs, char *why)
{
	bool is_long = !strncmp(word, "--", 2);

	if (c == ':' && is_long)
		snprintf(why, READ_OPTION_WHY_BYTES, "option '--%s' needs a value",
			 long_name(longs, optopt));
	else if (c == ':')
		snprintf(why, READ_OPTION_WHY_BYTES, "option '-%c' needs a value", optopt);
	else if (!optopt)
		say_unknown(longs, word + 2, why);
	else if (is_long && strchr(word, '='))
		snprintf(why, READ_OPTION_WHY_BYTES, "option '--%s' takes no value",
			 long_name(longs, optopt));
	else /* maybe within -abc: then word is the one before */
		snprintf(why, READ_OPTION_WHY_BYTES, "unknown option '-%c'", optopt);
}

int read_option(int argc, char **argv, const char *letters, const struct option *longs,
		char why[READ_OPTION_WHY_BYTES])
{
	int c;

	opterr = 0;
	c = getopt_long(argc, argv, letters, longs, NULL);
	if (c != '?' && c != ':')
		return c;
	explain(c, argv[optind - 1], longs, why);
	return '?';
}
