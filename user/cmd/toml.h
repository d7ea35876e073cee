/* SPDX-License-Identifier: MIT */
/*
 * toml.h - a strict reader of the part of TOML 1.0 that flat configuration files need. Pure.
 *
 *	key = value	# comment
 *
 * Keys are bare (letters, digits, '_', '-') and stand at the top of the file. A value is a string ("basic" with
 * escapes, or 'literal'), an integer (decimal), a float, true, false, or an array of these, which may span several
 * lines. Everything else in TOML is an error that names it: tables, dotted and quoted keys, strings of several lines,
 * inline tables, arrays in arrays, dates, numbers of other bases, inf and nan. A file that is accepted here means the
 * same to every reader of TOML. Its own file because a reader of a format is tested and fuzzed alone.
 *
 * All errors of a file are reported, at most one for each key: after an error reading goes on with the next key.
 */
#ifndef HT_CMD_TOML_H
#define HT_CMD_TOML_H

#include "base/std.h"
#include "base/vec.h"

enum toml_type { TOML_STRING, TOML_INTEGER, TOML_FLOAT, TOML_BOOL };

struct toml_value {
	enum toml_type type;
	unsigned line; /* from 1 */
	/* The characters of a string, never with a NUL among them; for a number the text for strtod(), for
	 * a bool "true" or "false". */
	char *text;
};

struct toml_entry {
	char *key;
	unsigned line; /* of the key */
	bool is_array; /* otherwise there is one value */
	VEC(struct toml_value) values;
};

struct toml_doc {
	VEC(struct toml_entry) entries; /* in the order of the file; no key occurs twice */
};

/* key: "" when it is not known. */
typedef void (*toml_error_fn)(void *ctx, unsigned line, const char *key, const char *what);

/* 0; -EINVAL: there were errors, and ret holds the valid entries; -ENOMEM. Release ret in any case. */
int toml_parse(const char *text, size_t bytes, toml_error_fn on_error, void *ctx,
	       struct toml_doc *ret);
void toml_release(struct toml_doc *doc);

#endif
