/* SPDX-License-Identifier: MIT */
/* markup.c - see markup.h. */
#include "base/markup.h"

#include <string.h>

#include "base/printable.h"
#include "base/utf8.h"

static const char *entity_of(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	}
	return printable(c) != c && c != '\n' && c != '\t' ? " " : NULL;
}

static bool is_noncharacter(const char *text, size_t len)
{
	return len == 3 && (!memcmp(text, "\xef\xbf\xbe", 3) || !memcmp(text, "\xef\xbf\xbf", 3));
}

void markup_put(const char *text, size_t len, FILE *out)
{
	for (size_t n; len; text += n, len -= n) {
		const char *entity;

		n = utf8_len(text, len);
		entity = n == 1 ? entity_of(*text) : NULL;
		if (entity)
			fputs(entity, out);
		else if (!n || (n > 1 && printable_is_harmful(text, n)) || is_noncharacter(text, n))
			fputs("\xef\xbf\xbd", out);
		else
			fwrite(text, 1, n, out);
		n += !n;
	}
}

/* Outside of strings JSON has no '<'. */
void markup_put_json(const char *json, FILE *out)
{
	for (const char *end; *json; json = end) {
		end = json + strcspn(json, "<");
		fwrite(json, 1, (size_t)(end - json), out);
		if (!*end)
			break;
		fputs("\\u003c", out);
		end++;
	}
}
