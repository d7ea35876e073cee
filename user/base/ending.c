/* SPDX-License-Identifier: MIT */
/* ending.c - see ending.h. */
#include "base/ending.h"

#include <string.h>
#include <strings.h>

bool has_ending(const char *path, const char *ending)
{
	size_t len = strlen(path), n = strlen(ending);

	return len >= n && !strcmp(path + len - n, ending);
}

int ending_meaning(const char *path, const struct ending *endings, size_t cnt, int none)
{
	for (size_t i = 0; i < cnt; i++)
		if (has_ending(path, endings[i].text))
			return endings[i].meaning;
	return none;
}

bool has_unwritten_ending(const char *path)
{
	size_t len = strlen(path);

	return (len >= 4 && !strcasecmp(path + len - 4, ".svg")) ||
	       has_ending(path, ".speedscope.json");
}
