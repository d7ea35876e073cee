/* SPDX-License-Identifier: MIT */
/* ending.h - the ending of a file's name, which says what is in it. */
#ifndef HT_BASE_ENDING_H
#define HT_BASE_ENDING_H

#include <stdbool.h>
#include <stddef.h>

struct ending {
	const char *text; /* ".html" */
	int meaning;
};

bool has_ending(const char *path, const char *ending);
/* Return the meaning of the first ending that path has; none: of none. */
int ending_meaning(const char *path, const struct ending *endings, size_t cnt, int none);
/* Is it a form that heaptap does not write, so that a file of any other under this name would mislead? */
bool has_unwritten_ending(const char *path);

#endif
