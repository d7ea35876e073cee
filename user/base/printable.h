/* SPDX-License-Identifier: MIT */
/*
 * printable.h - names that others gave, in lines of ours: a control character would break the line,
 * or be taken for something that it is not. It becomes '?'.
 */
#ifndef HT_BASE_PRINTABLE_H
#define HT_BASE_PRINTABLE_H

static inline char printable(char c)
{
	return (unsigned char)c < ' ' || c == 127 ? '?' : c;
}

/* All of a text. */
static inline void make_printable(char *text)
{
	for (; *text; text++)
		*text = printable(*text);
}

#endif
