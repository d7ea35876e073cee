/* SPDX-License-Identifier: MIT */
/* err.c - see err.h. */
#include "base/err.h"

static void add(struct err *err, const char *fmt, va_list args)
{
	size_t len = strlen(err->text);

	vsnprintf(err->text + len, sizeof(err->text) - len, fmt, args);
}

int err_set_args(struct err *err, int code, const char *fmt, va_list args)
{
	if (!err)
		return code;
	err->text[0] = '\0';
	err->offset = err->line = 0;
	add(err, fmt, args);
	return code;
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	err_set_args(err, code, fmt, args);
	va_end(args);
	return code;
}

int err_set_os(struct err *err, int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	err_set_args(err, code, fmt, args);
	va_end(args);
	err_add(err, ": %s", strerror(-code));
	return code;
}

void err_add(struct err *err, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return;
	va_start(args, fmt);
	add(err, fmt, args);
	va_end(args);
}
