/* SPDX-License-Identifier: MIT */
/* explain/add_text.h - sentences, one behind the other. */
#ifndef HT_EXPLAIN_ADD_TEXT_H
#define HT_EXPLAIN_ADD_TEXT_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Append to text, an array of so many bytes. What does not fit is cut. */
__attribute__((format(printf, 3, 4))) static inline void add_text(char *text, size_t bytes,
								  const char *fmt, ...)
{
	size_t len = strlen(text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + len, bytes - len, fmt, args);
	va_end(args);
}

#endif
