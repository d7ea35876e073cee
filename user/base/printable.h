/* SPDX-License-Identifier: MIT */
/*
 * printable.h - makes foreign names safe in our lines: a control character would break the line, command the terminal,
 * or be taken for something else. It becomes '?'.
 */
#ifndef HT_BASE_PRINTABLE_H
#define HT_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* For one byte of a text that goes through make_printable() as a whole, or is ASCII. */
static inline char printable(char c)
{
	return (unsigned char)c < ' ' || c == 127 ? '?' : c;
}

/*
 * Make a whole text printable, in place; it never becomes longer. Replaced: controls of 7 bits and 8 (U+0080 to U+009F,
 * which begin sequences in some terminals), line separators U+2028 and U+2029, what turns the direction of writing
 * (U+202A to U+202E, U+2066 to U+2069), and invalid UTF-8.
 */
void make_printable(char *text);
/* The same for n bytes, which may contain zeros; return how many are left. */
size_t make_printable_n(char *text, size_t n);

/* Is a valid sequence of len > 1 bytes one of these? */
bool printable_is_harmful(const char *seq, size_t len);

#endif
