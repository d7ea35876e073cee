/* SPDX-License-Identifier: MIT */
/*
 * option.h - the options of a command, in one table. The command line, a configuration file, --help, the configuration
 * in effect and shell completion all use this table.
 *
 * A row says the option's name, the kind of its value, and where the value goes in the caller's struct. To add an
 * option, add a row and a member:
 *
 *	OPTION(SIZE, 'r', "rate", "BYTES", AT(rate_bytes), "sample every BYTES allocated", .value = "64k",
 *	       .min = 1, .max = 1ULL << 40),
 *
 * On the command line it is --rate 64k, --rate=64k or -r 64k; in the file, rate = "64k". An option's key in the file is
 * its name; the value of an option that may be repeated is an array there. The command line replaces everything that
 * the file says about an option.
 *
 * option.c has the values and the output, option_args.c the command line, option_file.c the file.
 */
#ifndef HT_CMD_OPTION_H
#define HT_CMD_OPTION_H

#include "base/std.h"
#include "base/vec.h"

struct err;

enum option_type {
	OPTION_HEADING, /* no option: .help is a heading in --help for what follows */
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
	OPTION_LIMIT, /* struct option_limit: the same, or "5!" */
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
	OPTION_AT_START = 1, /* another value takes effect only after a restart */
	OPTION_NOT_IN_FILE = 2, /* only for the command line */
	OPTION_HIDDEN = 4, /* for tests and comparisons: not shown anywhere, and not in the file */
	OPTION_UNSAID = 8, /* a bad value may hold a secret: errors do not repeat it */
	/* --name or --name=VALUE. Without a value a text is NULL, a number 0, and a choice its second one. A count
	 * may also be the next word, unless a file has that name. */
	OPTION_MAY_HAVE_VALUE = 16,
	OPTION_COMMAS = 32, /* of OPTION_TEXTS: "a,b" are two values; none may be empty */
};

/* Check a text: 0, or a negative errno and a sentence for the user in why. */
typedef int (*option_check_fn)(const char *text, struct err *why);

struct option_row {
	const char *name;
	char letter; /* '\0': none */
	enum option_type type;
	unsigned flags;
	size_t at; /* offsetof() of the value in the settings */
	/* Name of the value in --help. Shells complete FILE, DIR, PID and USER with existing ones. */
	const char *arg;
	const char *value; /* the default, as a user would write it; NULL: none, 0 or false */
	const char *const *choices; /* ends with NULL; for a text: what shells offer */
	uint64_t min, max; /* for numbers, in the unit of the value; max 0: no limit */
	option_check_fn check; /* for texts; NULL: any text is valid */
	/* for numbers: what is wanted, in errors; NULL: a text for the type */
	const char *wanted;
	const char *help;
};

/* A row; kind: the end of an option_type; AT(): offsetof() in the command's settings; letter_ 0, arg_ NULL: none. */
#define OPTION(kind, letter_, name_, arg_, at_, help_, ...)                                      \
	{                                                                                        \
		.type = OPTION_##kind, .letter = letter_, .name = name_, .arg = arg_, .at = at_, \
		.help = help_, ##__VA_ARGS__                                                     \
	}

struct option_table {
	const struct option_row *rows;
	size_t cnt;
	bool ends_at_operand; /* the words after the first operand are a command's arguments */
};

/* Called for one error: a sentence for the user that says where it is. */
typedef void (*option_error_fn)(void *ctx, const char *text);
__attribute__((format(printf, 3, 4))) void option_complain(option_error_fn on_error, void *ctx,
							   const char *fmt, ...);

/* NULL: there is no option with this name. */
const struct option_row *option_find(const struct option_table *t, const char *name);

/* The options on a command line, read and not yet applied. Refers to the table and to argv. */
struct option_given {
	const struct option_row *row;
	const char *text; /* NULL: no value was given */
};
struct option_args {
	VEC(struct option_given) given;
	size_t first; /* index in argv of the first operand: operands are moved to the end */
};

/* argv[0] is skipped. -EINVAL: unknown options, missing values. */
int option_read_args(const struct option_table *t, int argc, char **argv, option_error_fn on_error,
		     void *ctx, struct option_args *ret);
static inline void option_args_release(struct option_args *args)
{
	vec_release(&args->given);
}

/* The last text given for an option; "" without a value; NULL: not given. */
const char *option_args_find(const struct option_args *args, const char *name);

/*
 * Settings are the caller's struct, zeroed. Apply the defaults first, then the file, then the command line. After a
 * failure they hold the valid values; release them in any case.
 */
int option_apply_defaults(const struct option_table *t, void *settings);
/* -EINVAL: on_error was called for every wrong key, with name and line. lines: NULL, or one zeroed entry for each
 * row, which receives the line of its key. */
int option_apply_file(const struct option_table *t, void *settings, const char *name,
		      const char *text, size_t bytes, option_error_fn on_error, void *ctx,
		      unsigned *lines);
int option_apply_args(void *settings, const struct option_args *args, option_error_fn on_error,
		      void *ctx);
void option_release(const struct option_table *t, void *settings);

/* Set one value, as a user would write it; a repeated option gets one more. text NULL: no value. */
int option_set(const struct option_row *row, void *settings, const char *text, struct err *why);
/* Remove all values of a repeated option, set a text to NULL; other values stay. */
void option_clear(const struct option_row *row, void *settings);

#define OPTION_FILE_BYTES_CAP (1 << 20)
/*
 * Read a configuration file: a regular file that belongs to root or to who runs this, and that nobody else may write,
 * because it says where data is sent. *ret is malloc'ed. On failure why has a sentence for the user.
 */
int option_read_file(const char *path, char **ret, size_t *ret_bytes, struct err *why);

/* May the option be in the configuration file? */
bool option_is_in_file(const struct option_row *row);
/* Do two settings have the same value for an option? */
bool option_is_equal(const struct option_row *row, const void *a, const void *b);
/* Copy the value of an option in `from` to `to`. -ENOMEM leaves `to` as it was. */
int option_copy(const struct option_row *row, void *to, const void *from);

void option_print_help(const struct option_table *t, FILE *out);
/* Print a configuration file that gives the same settings when read again. */
void option_print_settings(const struct option_table *t, const void *settings, FILE *out);

#endif
