/* SPDX-License-Identifier: MIT */
/*
 * printable.h - joins texts, and makes foreign ones safe where they are written: in our lines, in HTML and XML, in words
 * for a shell.
 *
 * A control character would break the line, command the terminal, or be taken for something else. In our lines it
 * becomes '?'.
 */
#ifndef HT_BASE_PRINTABLE_H
#define HT_BASE_PRINTABLE_H

#include "base/std.h"

/* Append to text, an array of so many bytes. What does not fit is cut. */
__attribute__((format(printf, 3, 4))) void text_add(char *text, size_t bytes, const char *fmt, ...);

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

/* Length of the valid UTF-8 sequence (RFC 3629) at text, which has n > 0 bytes; 0: it is not valid.
 * A zero byte is not valid. */
size_t utf8_len(const char *text, size_t n);

/*
 * Write text in an element or a double-quoted attribute of HTML or XML. Controls except tab and newline become spaces.
 * U+FFFD replaces invalid UTF-8, characters that XML 1.0 lacks (U+FFFE, U+FFFF), and those that make_printable()
 * removes (8-bit controls, characters that separate lines or turn the direction of writing).
 */
void markup_put(const char *text, size_t len, FILE *out);
/* Write JSON into a script element that is data: no "</script>" and no "<!--" is left in it. */
void markup_put_json(const char *json, FILE *out);

/* Write a word of a command line that the user is to copy: a shell takes it for one word. In quotes if necessary.
 * Controls stay. */
void shell_word_put(const char *word, FILE *out);

#endif
