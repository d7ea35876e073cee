/* SPDX-License-Identifier: MIT */
/*
 * err.h - the text of an error, on its way up: the code says that something failed, the text says what to tell the
 * user.
 *
 * A function whose code does not say enough takes `struct err *why` as its last parameter and fills it when it fails.
 * Its callers pass it on, and the function that knows the command prints it. `int err` is always a code. A caller that
 * does not want the text passes NULL.
 *
 * The text says what could not be done, on what, why, and, if possible, what to do about it. It has no program name, no
 * command and no newline: whoever prints it adds them. It may hold names that a user or a followed process chose: log.h
 * makes them printable; code that prints it in another way must do so itself.
 *
 * A header says which codes come with a text, if not all do. To print the text after any error, empty it first, or
 * begin with "out of memory". After a success it means nothing.
 *
 * The caller owns the storage. It refers to nothing, so nothing is released, and it may be copied.
 */
#ifndef HT_BASE_ERR_H
#define HT_BASE_ERR_H

#include "base/std.h"

/* Room for any path and a sentence about it, the longest text there is. Longer ones are cut. */
#define ERR_BYTES (PATH_MAX + 256)

struct err {
	char text[ERR_BYTES];
	/* For readers of a format: where the input is wrong. */
	uint64_t offset; /* in bytes, after decompression */
	uint64_t line; /* of a text, from 1; 0: the reader counts no lines */
};

/*
 * Fill *err (NULL: nothing) and return code: "return err_set(why, -EINVAL, ...);". The arguments must not point
 * into the present text of err.
 */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same with ": " and strerror()'s text for code at the end. */
int err_set_os(struct err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int err_set_args(struct err *err, int code, const char *fmt, va_list args)
	__attribute__((format(printf, 3, 0)));
/* Append to the present text. */
void err_add(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
