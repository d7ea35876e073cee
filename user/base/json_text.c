/* SPDX-License-Identifier: MIT */
/* json_text.c - see json_text.h. */
#include "base/json_text.h"

#include <string.h>

#include "base/utf8.h"

static void put_ascii(FILE *out, char c)
{
	if (c == '"' || c == '\\')
		fprintf(out, "\\%c", c);
	else if (c < ' ' || c == 0x7f)
		fprintf(out, "\\u%04x", (unsigned)c);
	else
		fputc(c, out);
}

void json_put_text(FILE *out, const char *text)
{
	size_t left = strlen(text), len;

	fputc('"', out);
	for (; left; text += len, left -= len) {
		const unsigned char *p = (const unsigned char *)text;

		len = utf8_len(text, left);
		if (len == 1)
			put_ascii(out, *text);
		else if (len == 2 && p[0] == 0xc2 && p[1] < 0xa0)
			fprintf(out, "\\u%04x", p[1]);
		else if (len)
			fwrite(text, 1, len, out);
		else
			fputs("\xef\xbf\xbd", out);
		len += !len;
	}
	fputc('"', out);
}
