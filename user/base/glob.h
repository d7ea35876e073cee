/* SPDX-License-Identifier: MIT */
/* glob.h - patterns in which only '*' is special: it matches any characters, or none. */
#ifndef HT_BASE_GLOB_H
#define HT_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Does the pattern match all of text? Neither needs a 0 at the end. */
bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t text_len);

#endif
