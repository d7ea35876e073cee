/* SPDX-License-Identifier: MIT */
/*
 * jit_name.c - splits a name of code made at run time into its parts.
 *
 * V8: "KIND:" or "KIND:" and a sign for the tier (~ ^ + *), then the function's name ("" for an anonymous one),
 * then " FILE:LINE:COLUMN". CPython: "py::NAME:FILE".
 */

#include "proc/jit_entry.h"

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

/* Cut ":NUMBER" off the end and return it; -1: there is none. */
static int64_t cut_number(char *text)
{
	char *colon = strrchr(text, ':');
	int64_t n;

	if (!colon || !is_number(colon + 1))
		return -1;
	n = strtoll(colon + 1, NULL, 10);
	*colon = '\0';
	return n;
}

static bool split_v8(char *name, struct jit_name *ret)
{
	static const char *const kinds[] = { "JS:",	"LazyCompile:", "Function:",
					     "Script:", "Eval:",	"Callback:" };
	char *function = NULL, *file;
	int64_t column, line;

	for (size_t i = 0; i < ARRAY_CNT(kinds) && !function; i++)
		if (!strncmp(name, kinds[i], strlen(kinds[i])))
			function = name + strlen(kinds[i]);
	if (!function)
		return false;
	if (*function && strchr("~^+*", *function))
		function++;
	ret->function = function;
	file = strchr(function, ' ');
	if (file) {
		*file++ = '\0';
		column = cut_number(file);
		line = cut_number(file);
		line = line < 0 ? column : line;
		ret->line = line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
		ret->file = file;
	}
	if (!*function)
		ret->function = "(anonymous)";
	return true;
}

static bool split_python(char *name, struct jit_name *ret)
{
	char *colon;

	if (strncmp(name, "py::", 4) != 0)
		return false;
	ret->function = name + 4;
	colon = strchr(name + 4, ':');
	if (colon) {
		*colon = '\0';
		ret->file = colon + 1;
	}
	return *ret->function;
}

void jit_name_split(char *name, struct jit_name *ret)
{
	*ret = (struct jit_name){ .function = name, .file = "" };
	if (!split_v8(name, ret) && !split_python(name, ret))
		*ret = (struct jit_name){ .function = name, .file = "" };
}
