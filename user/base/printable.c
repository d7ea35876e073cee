/* SPDX-License-Identifier: MIT */
/* printable.c - see printable.h. */
#include "base/printable.h"

#include <string.h>

#include "base/utf8.h"

bool printable_is_harmful(const char *seq, size_t len)
{
	const unsigned char *p = (const unsigned char *)seq;

	if (len == 2)
		return p[0] == 0xc2 && p[1] < 0xa0;
	if (len != 3 || p[0] != 0xe2)
		return false;
	return (p[1] == 0x80 && p[2] >= 0xa8 && p[2] <= 0xae) ||
	       (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9);
}

size_t make_printable_n(char *text, size_t left)
{
	char *to = text;
	size_t len;

	for (const char *s = text; left; s += len, left -= len) {
		len = utf8_len(s, left);
		if (len > 1 && !printable_is_harmful(s, len)) {
			memmove(to, s, len);
			to += len;
		} else if (len == 1) {
			*to++ = printable(*s);
		} else {
			*to++ = '?';
			len += !len;
		}
	}
	return (size_t)(to - text);
}

void make_printable(char *text)
{
	text[make_printable_n(text, strlen(text))] = '\0';
}
