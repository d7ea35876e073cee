/* SPDX-License-Identifier: MIT */
/* printable.c - see printable.h. */
#include "base/printable.h"

void text_add(char *text, size_t bytes, const char *fmt, ...)
{
	size_t len = strlen(text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + len, bytes - len, fmt, args);
	va_end(args);
}

/* Is a valid sequence of len > 1 bytes one that make_printable() replaces? */
static bool is_harmful(const char *seq, size_t len)
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
		if (len > 1 && !is_harmful(s, len)) {
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

size_t utf8_len(const char *text, size_t n)
{
	const uint8_t *p = (const uint8_t *)text;
	size_t len = p[0] < 0x80 ? 1 :
		     p[0] < 0xc2 ? 0 :
		     p[0] < 0xe0 ? 2 :
		     p[0] < 0xf0 ? 3 :
		     p[0] < 0xf5 ? 4 :
				   0;

	if (len > n || !p[0])
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if (len == 3 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f)))
		return 0; /* overlong, or a surrogate */
	if (len == 4 && ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)))
		return 0; /* overlong, or beyond U+10FFFF */
	return len;
}

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
		else if (!n || (n > 1 && is_harmful(text, n)) || is_noncharacter(text, n))
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
