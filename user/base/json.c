/* SPDX-License-Identifier: MIT */
/* json.c - see json.h. */
#include "base/json.h"

#include "base/printable.h"

static void put_key(struct json *j, const char *name)
{
	if (j->needs_comma)
		fputc(',', j->out);
	j->needs_comma = true;
	if (name)
		fprintf(j->out, "\"%s\":", name);
}

void json_begin(struct json *j, const char *name, char bracket)
{
	put_key(j, name);
	fputc(bracket, j->out);
	j->needs_comma = false;
}

void json_end(struct json *j, char bracket)
{
	fputc(bracket, j->out);
	j->needs_comma = true;
}

static void put_ascii(FILE *out, char c)
{
	if (c == '"' || c == '\\')
		fprintf(out, "\\%c", c);
	else if (c < ' ' || c == 0x7f)
		fprintf(out, "\\u%04x", (unsigned)c);
	else
		fputc(c, out);
}

static void put_string(FILE *out, const char *text)
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

void json_text(struct json *j, const char *name, const char *text)
{
	put_key(j, name);
	if (text)
		put_string(j->out, text);
	else
		fputs("null", j->out);
}

void json_bool(struct json *j, const char *name, bool value)
{
	put_key(j, name);
	fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *name)
{
	json_text(j, name, NULL);
}

void json_number(struct json *j, const char *name, int decimals, double value)
{
	if (isfinite(value))
		json_format(j, name, "%.*f", decimals, value);
	else
		json_null(j, name);
}

void json_uint(struct json *j, const char *name, uint64_t value)
{
	json_format(j, name, "%llu", (unsigned long long)value);
}

void json_format(struct json *j, const char *name, const char *fmt, ...)
{
	va_list args;

	put_key(j, name);
	va_start(args, fmt);
	vfprintf(j->out, fmt, args);
	va_end(args);
}

void json_line(struct json *j)
{
	fputs(j->needs_comma ? ",\n" : "\n", j->out);
	j->needs_comma = false;
}
