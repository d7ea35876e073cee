/* SPDX-License-Identifier: MIT */
/*
 * json.h - JSON (RFC 8259), written as it goes: names, commas and escapes.
 *
 *	struct json j = { .out = out };
 *
 *	json_begin(&j, NULL, '{');
 *	json_text(&j, "name", name);
 *	json_format(&j, "bytes", "%llu", bytes);
 *	json_end(&j, '}');
 *
 * A value of an object has a name, which is written as it is; one of an array, and the outermost, has NULL.
 */
#ifndef HT_BASE_JSON_H
#define HT_BASE_JSON_H

#include <stdbool.h>
#include <stdio.h>

struct json {
	FILE *out;
	bool needs_comma;
};

/* bracket: '{' or '[', and what closes it. */
void json_begin(struct json *j, const char *name, char bracket);
void json_end(struct json *j, char bracket);
/* A string; NULL: null. What is no UTF-8 becomes U+FFFD; controls, also those of 8 bits, are escaped: who
 * reads it in a terminal is safe. */
void json_text(struct json *j, const char *name, const char *text);
void json_bool(struct json *j, const char *name, bool value);
void json_null(struct json *j, const char *name);
/* A number, or what else is a value as it stands. */
__attribute__((format(printf, 3, 4))) void json_format(struct json *j, const char *name,
						       const char *fmt, ...);
/* What comes next begins a line. */
void json_line(struct json *j);

#endif
