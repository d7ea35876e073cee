/* SPDX-License-Identifier: MIT */
/*
 * json.h - writes JSON (RFC 8259) piece by piece: names, commas and escapes.
 *
 *	struct json j = { .out = out };
 *
 *	json_begin(&j, NULL, '{');
 *	json_text(&j, "name", name);
 *	json_uint(&j, "bytes", bytes);
 *	json_end(&j, '}');
 *
 * A value in an object has a name, which is written without escapes. A value in an array, and the outermost, has NULL.
 */
#ifndef HT_BASE_JSON_H
#define HT_BASE_JSON_H

#include "base/std.h"

struct json {
	FILE *out;
	bool needs_comma;
};

/* bracket: '{' or '['; for json_end() the matching one. */
void json_begin(struct json *j, const char *name, char bracket);
void json_end(struct json *j, char bracket);
/* Write a string; NULL: null. Invalid UTF-8 becomes U+FFFD. Controls, also those of 8 bits, are escaped, so the
 * output is safe to read in a terminal. */
void json_text(struct json *j, const char *name, const char *text);
void json_bool(struct json *j, const char *name, bool value);
void json_null(struct json *j, const char *name);
/* Write a number with so many decimals; NAN or infinite: null. */
void json_number(struct json *j, const char *name, int decimals, double value);
void json_uint(struct json *j, const char *name, uint64_t value);
/* Write a number, or another value as it stands. */
__attribute__((format(printf, 3, 4))) void json_format(struct json *j, const char *name,
						       const char *fmt, ...);
/* Begin a new line for what comes next. */
void json_line(struct json *j);

#endif
