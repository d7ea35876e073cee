/* SPDX-License-Identifier: MIT */
/* glob.h - patterns of which only '*' is special: any characters, none too. */
#ifndef HT_BASE_GLOB_H
#define HT_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Does the pattern stand for all of text? Both need no 0 at the end. */
bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t text_len);

#endif
