/* SPDX-License-Identifier: MIT */
/* shell_word.c - see shell_word.h. */
#include "base/shell_word.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Is it a character that no shell treats specially, anywhere in a word? Names in other alphabets need no quotes. */
static bool is_plain(char c)
{
	return (unsigned char)c >= 0x80 || isalnum((unsigned char)c) || strchr("/._-+:,@%=", c);
}

void shell_word_put(const char *word, FILE *out)
{
	const char *c = word;

	while (*c && is_plain(*c))
		c++;
	if (*word && !*c) {
		fputs(word, out);
		return;
	}
	fputc('\'', out);
	for (c = word; *c; c++) {
		if (*c == '\'')
			fputs("'\\''", out);
		else
			fputc(*c, out);
	}
	fputc('\'', out);
}
