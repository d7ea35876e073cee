/* SPDX-License-Identifier: MIT */
/* glob.c - see glob.h. Only the last star is ever tried again, so the time is at most the product
 * of the lengths. */
#include "base/glob.h"

bool glob_match(const char *pattern, size_t pattern_len, const char *text, size_t text_len)
{
	size_t p = 0, t = 0, after_star = 0, taken = 0;
	bool has_star = false;

	while (t < text_len) {
		if (p < pattern_len && pattern[p] == '*') {
			has_star = true;
			after_star = ++p;
			taken = t;
		} else if (p < pattern_len && pattern[p] == text[t]) {
			p++;
			t++;
		} else if (has_star) { /* the star takes one more */
			p = after_star;
			t = ++taken;
		} else {
			return false;
		}
	}
	while (p < pattern_len && pattern[p] == '*')
		p++;
	return p == pattern_len;
}
