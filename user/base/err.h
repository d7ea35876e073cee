/* SPDX-License-Identifier: MIT */
/*
 * err.h - an error's words, on their way up: the code says that something failed, these say what to tell the user.
 *
 * A function whose code does not say enough takes `struct err *why` as its last parameter and fills it when it fails.
 * Its callers hand it on, and the one who knows the command prints it. `int err` is always a code. Who does not want
 * the words gives NULL.
 *
 * The text says what could not be done, on what, why, and what to do about it where there is something. It has no
 * program name, no command and no newline: the one who prints it adds them. It may hold names that a user or a
 * followed process chose: log.h makes them printable, whoever prints it elsewhere does so himself.
 *
 * A header says with which codes there is a text, if not with all. Who prints it after any error empties it first, or
 * begins with "out of memory". After a success it means nothing.
 *
 * The storage is the caller's. It owns nothing, so nothing is released, and it may be copied.
 */
#ifndef HT_BASE_ERR_H
#define HT_BASE_ERR_H

#include <limits.h>
#include <stdarg.h>
#include <stdint.h>

/* Any path, and a sentence about it: the longest that is said. What does not fit is cut. */
#define ERR_BYTES (PATH_MAX + 256)

struct err {
	char text[ERR_BYTES];
	/* Of readers of a format: where in the input it is wrong. */
	uint64_t offset; /* in bytes, of what is decompressed */
	uint64_t line; /* from 1, of text; 0: its readers count no lines */
};

/*
 * Each fills *err, or nothing where it is NULL, and returns code: "return err_set(why, -EINVAL, ...);". The arguments are
 * not of the text that is there.
 */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* With ": " and what strerror() says of code behind it. */
int err_set_os(struct err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int err_set_args(struct err *err, int code, const char *fmt, va_list args)
	__attribute__((format(printf, 3, 0)));
/* Behind what is there already. */
void err_add(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
