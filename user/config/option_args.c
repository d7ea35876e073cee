/* SPDX-License-Identifier: MIT */
/* option_args.c - the command line of option.h, through read_option(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/option.h"
#include "config/option_priv.h"
#include "config/read_option.h"

/* Values of long options are above those of letters. */
#define LONG_BASE 256

struct getopt_tables {
	struct option *longs; /* of rows[i]: val is LONG_BASE + i, hidden ones above */
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
	ret->letters[len++] = ':';
	for (size_t i = 0; i < t->cnt; i++) {
		const struct option_row *row = &t->rows[i];

		if (row->type == OPTION_HEADING)
			continue;
		ret->longs[long_cnt++] = (struct option){
			.name = row->name,
			.has_arg = row->type == OPTION_FLAG ? no_argument : required_argument,
			.val = LONG_BASE + (int)i +
			       (row->flags & OPTION_HIDDEN ? READ_OPTION_HIDDEN : 0),
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
		return &t->rows[c % READ_OPTION_HIDDEN - LONG_BASE];
	for (size_t i = 0; i < t->cnt; i++)
		if (c && t->rows[i].letter == c)
			return &t->rows[i];
	return NULL;
}

int option_read_args(const struct option_table *t, int argc, char **argv, option_error_fn on_error,
		     void *ctx, struct option_args *ret)
{
	struct getopt_tables tables = { 0 };
	char why[READ_OPTION_WHY_BYTES];
	int c, err = make_tables(t, &tables);

	*ret = (struct option_args){ 0 };
	if (err)
		goto out;
	optind = 0; /* from the start, whatever was read before */
	while (err != -ENOMEM &&
	       (c = read_option(argc, argv, tables.letters, tables.longs, why)) != -1) {
		if (c == '?') {
			on_error(ctx, why);
			err = -EINVAL;
		} else if (vec_push(&ret->given, (struct option_given){ row_of(t, c), optarg })) {
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
