/* SPDX-License-Identifier: MIT */
/* option_args.c - the command line of option.h, through getopt_long(). */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "config/option.h"
#include "config/option_priv.h"

/* Values of long options are above those of letters. */
#define LONG_BASE 256

struct getopt_tables {
	struct option *longs; /* of rows[i]: val is LONG_BASE + i */
	char *letters;
};

static int make_tables(const struct option_table *t, struct getopt_tables *ret)
{
	size_t long_cnt = 0, len = 0;

	ret->longs = calloc(t->cnt + 1, sizeof(*ret->longs));
	ret->letters = malloc(2 * t->cnt + 3);
	if (!ret->longs || !ret->letters)
		return -ENOMEM;
	ret->letters[len++] = '+'; /* stop at the first that is no option... */
	ret->letters[len++] = ':'; /* ... and tell a missing value from an unknown option */
	for (size_t i = 0; i < t->cnt; i++) {
		const struct option_row *row = &t->rows[i];

		if (row->type == OPTION_HEADING)
			continue;
		ret->longs[long_cnt++] = (struct option){
			.name = row->name,
			.has_arg = row->type == OPTION_FLAG ? no_argument : required_argument,
			.val = LONG_BASE + (int)i,
		};
		if (!row->letter)
			continue;
		ret->letters[len++] = row->letter;
		if (row->type != OPTION_FLAG)
			ret->letters[len++] = ':';
	}
	ret->letters[len] = '\0';
	return 0;
}

static const struct option_row *row_of(const struct option_table *t, int c)
{
	if (c >= LONG_BASE)
		return &t->rows[c - LONG_BASE];
	for (size_t i = 0; i < t->cnt; i++)
		if (c && t->rows[i].letter == c)
			return &t->rows[i];
	return NULL;
}

/* getopt returned ':' or '?'. word is what it has read last. */
static void complain(const struct option_table *t, int c, const char *word,
		     option_error_fn on_error, void *ctx)
{
	const struct option_row *row = optopt ? row_of(t, optopt) : NULL;
	const char *nearest;
	char name[64];

	if (c == ':' && row) {
		option_complain(on_error, ctx, "--%s wants a value (%s)", row->name,
				row->arg ? row->arg : "");
	} else if (row) {
		option_complain(on_error, ctx, "--%s takes no value", row->name);
	} else if (optopt) {
		option_complain(on_error, ctx, "there is no option '-%c'", optopt);
	} else {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
		nearest = option_nearest(t, name, OPTION_HIDDEN);
		option_complain(on_error, ctx, "there is no option '--%s'%s%s%s", name,
				nearest ? ": is '--" : "", nearest ? nearest : "",
				nearest ? "' meant?" : "");
	}
}

int option_read_args(const struct option_table *t, int argc, char **argv, option_error_fn on_error,
		     void *ctx, struct option_args *ret)
{
	struct getopt_tables tables = { 0 };
	int c, err = make_tables(t, &tables);

	*ret = (struct option_args){ 0 };
	if (err)
		goto out;
	optind = 0; /* from the start, whatever was read before */
	opterr = 0;
	while (err != -ENOMEM &&
	       (c = getopt_long(argc, argv, tables.letters, tables.longs, NULL)) != -1) {
		const struct option_row *row = row_of(t, c);

		if (c == '?' || c == ':') {
			complain(t, c, argv[optind > 0 ? optind - 1 : 0], on_error, ctx);
			err = -EINVAL;
		} else if (vec_push(&ret->given, (struct option_given){ row, optarg })) {
			err = -ENOMEM;
		}
	}
	ret->first = (size_t)optind;
out:
	free(tables.longs);
	free(tables.letters);
	return err;
}

void option_args_release(struct option_args *args)
{
	vec_release(&args->given);
}

const char *option_args_find(const struct option_args *args, const char *name)
{
	for (size_t i = args->given.cnt; i-- > 0;)
		if (!strcmp(args->given.data[i].row->name, name))
			return args->given.data[i].text ? args->given.data[i].text : "";
	return NULL;
}
