/* SPDX-License-Identifier: MIT */
/*
 * option.h - the options of a command, from one table: the command line, a configuration file, --help,
 * the configuration in effect and what shells complete are all read by it or made from it.
 *
 * A row says what an option is called, what kind of value it has and where in the caller's struct
 * the value goes. To add an option is to add a row and a member:
 *
 *	{ .name = "rate", .letter = 'r', .type = OPTION_SIZE, .at = AT(rate_bytes), .arg = "BYTES",
 *	  .value = "64k", .min = 1, .max = 1ULL << 40, .help = "sample every BYTES allocated" },
 *
 * On the command line it is --rate 64k, --rate=64k or -r 64k; in the file, rate = "64k". The key of
 * an option in the file is its name; one that may be repeated is an array there. What the command
 * line says of an option replaces all that the file says of it.
 *
 * option.c has the values, option_args.c the command line, option_file.c the file, option_print.c what is
 * printed.
 */
#ifndef HT_CONFIG_OPTION_H
#define HT_CONFIG_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/texts.h"
#include "base/units.h"
#include "base/vec.h"

struct err;

enum option_type {
	OPTION_HEADING, /* no option: .help stands before what follows, in --help */
	OPTION_ASK, /* a flag that is no setting, such as --help: see option_args_find() */
	OPTION_FLAG, /* bool; takes no value */
	OPTION_CHOICE, /* enum (int): the index of one of .choices */
	OPTION_TEXT, /* char *, NULL when it is not given */
	OPTION_TEXTS, /* struct texts; may be repeated */
	OPTION_NUMBERS, /* struct option_numbers; may be repeated */
	OPTION_COUNT, /* uint64_t, a plain number */
	OPTION_SIZE, /* uint64_t, bytes: "64k" */
	OPTION_TIME, /* uint64_t, nanoseconds: "10s" */
	OPTION_PERCENT, /* double: 5, 0.5 or "5%" */
	OPTION_LIMIT, /* struct option_limit: as that, or "5!" */
};

struct option_limit {
	double percent;
	bool is_strict; /* written with "!" */
};

struct option_numbers {
	uint64_t *data;
	size_t cnt, cap;
};

enum {
	OPTION_AT_START = 1, /* another value needs a new start */
	OPTION_NOT_IN_FILE = 2, /* of the command line alone */
	OPTION_HIDDEN = 4, /* for tests and comparisons: not told to anybody, and not in the file */
	OPTION_UNSAID = 8, /* a value that will not do may hold a secret: errors do not repeat it */
	/* --name or --name=VALUE. Without a value a text is NULL, a number 0, and a choice its second one. A number may be a word of
	 * its own too, where no file has that name. */
	OPTION_MAY_HAVE_VALUE = 16,
	OPTION_COMMAS = 32, /* of OPTION_TEXTS: "a,b" is two, and none is empty */
};

/* A sentence for the user in why when the text will not do: 0 or a negative errno. */
typedef int (*option_check_fn)(const char *text, struct err *why);

struct option_row {
	const char *name;
	char letter; /* '\0': none */
	enum option_type type;
	unsigned flags;
	size_t at; /* offsetof() the value in the settings */
	/* What --help calls the value. Shells complete FILE, DIR, PID and USER with what there is. */
	const char *arg;
	const char *value; /* the default, as one would write it; NULL: none, 0 or false */
	const char *const *choices; /* ends with NULL; of a text: what shells offer */
	uint64_t min, max; /* of numbers, in the unit of the value; max 0: no limit */
	option_check_fn check; /* of texts; NULL: any will do */
	const char *
		wanted; /* of numbers: what a value has to be, for errors; NULL: as the type says */
	const char *help;
};

struct option_table {
	const struct option_row *rows;
	size_t cnt;
	bool ends_at_operand; /* what follows the first operand is not ours: the arguments of a command */
};

/* One error, as a sentence for the user that says where it is. */
typedef void (*option_error_fn)(void *ctx, const char *text);
__attribute__((format(printf, 3, 4))) void option_complain(option_error_fn on_error, void *ctx,
							   const char *fmt, ...);

/* NULL: there is none of this name. */
const struct option_row *option_find(const struct option_table *t, const char *name);

/* The command line, read and not yet applied. Refers to the table and to argv. */
struct option_given {
	const struct option_row *row;
	const char *text; /* NULL: without a value */
};
struct option_args {
	VEC(struct option_given) given;
	size_t first; /* the first of argv that is no option: operands are moved to the end */
};

/* argv[0] is skipped. -EINVAL: unknown options, missing values. */
int option_read_args(const struct option_table *t, int argc, char **argv, option_error_fn on_error,
		     void *ctx, struct option_args *ret);
void option_args_release(struct option_args *args);
/* The last text given for an option, or NULL; "" without a value. */
const char *option_args_find(const struct option_args *args, const char *name);

/*
 * Settings are the caller's struct, zeroed: first the defaults, then the file, then the command
 * line. On failure they hold what was sound; release them in any case.
 */
int option_apply_defaults(const struct option_table *t, void *settings);
/* -EINVAL: on_error was told of every key that is wrong, each with name and line. lines: NULL, or one
 * for each row, zeroed: the line that gives it. */
int option_apply_file(const struct option_table *t, void *settings, const char *name,
		      const char *text, size_t bytes, option_error_fn on_error, void *ctx,
		      unsigned *lines);
int option_apply_args(void *settings, const struct option_args *args, option_error_fn on_error,
		      void *ctx);
void option_release(const struct option_table *t, void *settings);

/* One value, as one would write it; a repeated option gets one more. text NULL: there is none. */
int option_set(const struct option_row *row, void *settings, const char *text, struct err *why);
/* A repeated option has no values then, a text is NULL; other values stay. */
void option_clear(const struct option_row *row, void *settings);

#define OPTION_FILE_BYTES_CAP (1 << 20)
/*
 * All of a configuration file: a regular file that nobody but its owner (root, or who runs this) may
 * write, because it says where data is sent. *ret is malloc'ed. On failure why has a sentence for the user.
 */
int option_read_file(const char *path, char **ret, size_t *ret_bytes, struct err *why);

/* Is it in the configuration file? */
bool option_is_in_file(const struct option_row *row);
/* Do two settings have the same value of an option? */
bool option_is_equal(const struct option_row *row, const void *a, const void *b);
/* That option of `to` becomes what it is in `from`. -ENOMEM leaves it as it was. */
int option_copy(const struct option_row *row, void *to, const void *from);

/* n as an option of this type is written, exactly: "64k", "1500ms". Returns buf. */
char *option_format_number(enum option_type type, uint64_t n, char buf[UNITS_BUF]);

void option_print_help(const struct option_table *t, FILE *out);
/* As a configuration file, which read again gives the same settings. */
void option_print_settings(const struct option_table *t, const void *settings, FILE *out);

#endif
