/* SPDX-License-Identifier: MIT */
/*
 * option_args.c - the command line of option.h.
 *
 * getopt_long() reads it; errors are reported here, in one helpful sentence, the same in every command.
 */
#include <getopt.h>

#include "base/err.h"
#include "base/names.h"
#include "cmd/option.h"

/* getopt_long() returns ROW_BASE plus the index of the option's row. Letters are below. */
#define ROW_BASE 256

struct getopt_tables {
	struct option *longs;
	char *letters;
	const char **names; /* names that may be suggested */
	size_t name_cnt;
};

static int value_kind(const struct option_row *row)
{
	if (row->type == OPTION_FLAG || row->type == OPTION_ASK)
		return no_argument;
	return row->flags & OPTION_MAY_HAVE_VALUE ? optional_argument : required_argument;
}

static int make_tables(const struct option_table *t, struct getopt_tables *ret)
{
	size_t long_cnt = 0, len = 0;

	ret->longs = calloc(t->cnt + 1, sizeof(*ret->longs));
	ret->names = calloc(t->cnt + 1, sizeof(*ret->names));
	ret->letters = malloc(3 * t->cnt + 3);
	if (!ret->longs || !ret->names || !ret->letters)
		return -ENOMEM;
	if (t->ends_at_operand)
		ret->letters[len++] = '+';
	ret->letters[len++] = ':';
	for (size_t i = 0; i < t->cnt; i++) {
		const struct option_row *row = &t->rows[i];

		if (row->type == OPTION_HEADING)
			continue;
		ret->longs[long_cnt++] = (struct option){
			.name = row->name,
			.has_arg = value_kind(row),
			.val = ROW_BASE + (int)i,
		};
		if (!(row->flags & OPTION_HIDDEN))
			ret->names[ret->name_cnt++] = row->name;
		if (!row->letter)
			continue;
		ret->letters[len++] = row->letter;
		for (int colons = value_kind(row); colons > 0; colons--)
			ret->letters[len++] = ':';
	}
	ret->letters[len] = '\0';
	return 0;
}

static void release_tables(struct getopt_tables *tables)
{
	free(tables->longs);
	free(tables->letters);
	free(tables->names);
}

static const struct option_row *row_of(const struct option_table *t, int c)
{
	if (c >= ROW_BASE)
		return &t->rows[c - ROW_BASE];
	for (size_t i = 0; i < t->cnt; i++)
		if (c && t->rows[i].letter == c)
			return &t->rows[i];
	return NULL;
}

/* Report a long option that getopt does not know, or that is the begin of several. */
static void say_unknown(const struct getopt_tables *tables, const char *word,
			option_error_fn on_error, void *ctx)
{
	char name[NEAREST_WORD_CAP + 1], all[512] = "";
	const char *meant = NULL;
	size_t used = 0, cnt = 0, left, i;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	for (i = 0; i < tables->name_cnt; i++)
		cnt += !strncmp(tables->names[i], name, strlen(name));
	left = cnt;
	for (i = 0; i < tables->name_cnt && used < sizeof(all); i++) {
		if (strncmp(tables->names[i], name, strlen(name)) != 0)
			continue;
		meant = tables->names[i];
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s--%s",
					 left == cnt ? "" :
					 left > 1    ? ", " :
						       " or ",
					 meant);
		left--;
	}
	if (cnt > 1) {
		option_complain(on_error, ctx, "option '--%s' is ambiguous: %s", name, all);
		return;
	}
	i = nearest_name(name, tables->names, tables->name_cnt);
	if (!meant && i < tables->name_cnt)
		meant = tables->names[i];
	option_complain(on_error, ctx, "unknown option '--%s'%s%s%s", name,
			meant ? ": did you mean --" : "", meant ? meant : "", meant ? "?" : "");
}

/* c: ':' from getopt, if a value is missing; else '?'. */
static void explain(const struct option_table *t, const struct getopt_tables *tables, int c,
		    const char *word, option_error_fn on_error, void *ctx)
{
	const struct option_row *row = row_of(t, optopt);
	bool is_long = row && !strncmp(word, "--", 2);

	if (c == ':' && is_long)
		option_complain(on_error, ctx, "option '--%s' needs a value", row->name);
	else if (c == ':')
		option_complain(on_error, ctx, "option '-%c' needs a value", optopt);
	else if (!optopt)
		say_unknown(tables, word + 2, on_error, ctx);
	else if (is_long && strchr(word, '='))
		option_complain(on_error, ctx, "option '--%s' takes no value", row->name);
	else /* maybe within -abc: then word is the one before */
		option_complain(on_error, ctx, "unknown option '-%c'", optopt);
}

/* Is the next word the value? "--frames 3" is "--frames=3", unless there is a file 3. */
static bool takes_next(const struct option_row *row, int argc, char **argv)
{
	const char *next = optind < argc ? argv[optind] : "";

	return row->flags & OPTION_MAY_HAVE_VALUE && row->type == OPTION_COUNT && !optarg &&
	       next[0] && !next[strspn(next, "0123456789")] && access(next, F_OK) != 0;
}

int option_read_args(const struct option_table *t, int argc, char **argv, option_error_fn on_error,
		     void *ctx, struct option_args *ret)
{
	struct getopt_tables tables = { 0 };
	int c, err = make_tables(t, &tables);

	*ret = (struct option_args){ 0 };
	optind = 0; /* start again, whatever was read before */
	opterr = 0;
	while (err != -ENOMEM &&
	       (c = getopt_long(argc, argv, tables.letters, tables.longs, NULL)) != -1) {
		struct option_given given = { row_of(t, c), optarg };

		if (!given.row) {
			explain(t, &tables, c, argv[optind - 1], on_error, ctx);
			err = -EINVAL;
			continue;
		}
		if (takes_next(given.row, argc, argv))
			given.text = argv[optind++];
		if (vec_push(&ret->given, given))
			err = -ENOMEM;
	}
	ret->first = (size_t)optind;
	release_tables(&tables);
	return err;
}

int option_apply_args(void *settings, const struct option_args *args, option_error_fn on_error,
		      void *ctx)
{
	struct err why;
	int err = 0;

	/* A repeated option on the command line replaces all values from the file. */
	for (size_t i = 0; i < args->given.cnt; i++)
		option_clear(args->given.data[i].row, settings);
	for (size_t i = 0; i < args->given.cnt; i++) {
		const struct option_row *row = args->given.data[i].row;
		const char *text = args->given.data[i].text;
		int one = option_set(row, settings, text, &why);

		if (one == -ENOMEM)
			return one;
		if (one && row->flags & OPTION_UNSAID)
			option_complain(on_error, ctx, "bad value for --%s: %s", row->name,
					why.text);
		else if (one)
			option_complain(on_error, ctx, "bad value '%s' for --%s: %s",
					text ? text : "", row->name, why.text);
		err = err ? err : one;
	}
	return err;
}

const char *option_args_find(const struct option_args *args, const char *name)
{
	for (size_t i = args->given.cnt; i-- > 0;)
		if (!strcmp(args->given.data[i].row->name, name))
			return args->given.data[i].text ? args->given.data[i].text : "";
	return NULL;
}
