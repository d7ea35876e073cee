/* SPDX-License-Identifier: MIT */
/*
 * printable.h - names that others gave, in lines of ours: a control character would break the line,
 * command the terminal, or be taken for something that it is not. It becomes '?'.
 */
#ifndef HT_BASE_PRINTABLE_H
#define HT_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Of a byte of a text that goes through make_printable() as a whole, or is ASCII. */
static inline char printable(char c)
{
	return (unsigned char)c < ' ' || c == 127 ? '?' : c;
}

/*
 * All of a text, in place, which becomes no longer: controls of 7 bits and of 8 (U+0080 to U+009F, which
 * begin sequences in some terminals), the separators of lines U+2028 and U+2029, what turns the direction
 * of writing (U+202A to U+202E, U+2066 to U+2069), and what is no UTF-8.
 */
void make_printable(char *text);
/* Of n bytes, zeros among them perhaps; returns how many are left. */
size_t make_printable_n(char *text, size_t n);

/* Is a valid sequence of len > 1 bytes one of those? */
bool printable_is_harmful(const char *seq, size_t len);

#endif
