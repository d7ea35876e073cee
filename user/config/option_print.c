/* SPDX-License-Identifier: MIT */
/* option_print.c - --help and the configuration in effect, of option.h. */
#include <stdlib.h>
#include <string.h>

#include "config/option.h"
#include "config/option_priv.h"

#define HELP_COLUMN 26
#define HELP_WIDTH 98

struct unit {
	const char *name;
	uint64_t factor;
};

/* The largest unit that n is a whole number of. */
static void format_whole(uint64_t n, const struct unit *units, size_t cnt, char buf[UNITS_BUF])
{
	size_t i = 0;

	while (i + 1 < cnt && (!n || n % units[i].factor))
		i++;
	snprintf(buf, UNITS_BUF, "%llu%s", (unsigned long long)(n / units[i].factor),
		 units[i].name);
}

char *option_format_number(enum option_type type, uint64_t n, char buf[UNITS_BUF])
{
	static const struct unit sizes[] = {
		{ "t", 1ULL << 40 }, { "g", 1 << 30 }, { "m", 1 << 20 }, { "k", 1 << 10 }, { "", 1 }
	};
	static const struct unit times[] = {
		{ "h", 3600000000000ULL }, { "m", 60000000000ULL }, { "s", 1000000000 },
		{ "ms", 1000000 },	   { "us", 1000 },	    { "ns", 1 }
	};
	static const struct unit none[] = { { "", 1 } };

	if (type == OPTION_SIZE)
		format_whole(n, sizes, sizeof(sizes) / sizeof(*sizes), buf);
	else if (type == OPTION_TIME)
		format_whole(n, times, sizeof(times) / sizeof(*times), buf);
	else
		format_whole(n, none, 1, buf);
	return buf;
}

/* A word of the help, on the next line when it does not fit into this one. */
static int print_word(FILE *out, const char *word, int len, int column)
{
	if (column + 1 + len > HELP_WIDTH) {
		fprintf(out, "\n%*s", HELP_COLUMN, "");
		column = HELP_COLUMN;
	} else if (column > HELP_COLUMN) {
		fputc(' ', out);
		column++;
	}
	fprintf(out, "%.*s", len, word);
	return column + len;
}

static void print_row(const struct option_row *row, FILE *out)
{
	char text[512];
	const char *at = text;
	int column;

	if (row->letter)
		column = fprintf(out, "  -%c, --%s", row->letter, row->name);
	else
		column = fprintf(out, "      --%s", row->name);
	if (row->type != OPTION_FLAG)
		column += fprintf(out, " %s", row->arg);
	if (column > HELP_COLUMN - 2) { /* too long: the help begins on the next line */
		fputc('\n', out);
		column = 0;
	}
	column += fprintf(out, "%*s", HELP_COLUMN - column, "");
	snprintf(text, sizeof(text), row->value ? "%s (default: %s)" : "%s", row->help, row->value);
	for (bool is_first = true; *at; is_first = false) {
		int len = (int)strcspn(at, " ");

		if (is_first)
			column += fprintf(out, "%.*s", len, at);
		else
			column = print_word(out, at, len, column);
		at += len;
		at += strspn(at, " ");
	}
	fputc('\n', out);
}

void option_print_help(const struct option_table *t, FILE *out)
{
	for (size_t i = 0; i < t->cnt; i++) {
		if (t->rows[i].type == OPTION_HEADING)
			fprintf(out, "\n%s:\n", t->rows[i].help);
		else if (!(t->rows[i].flags & OPTION_HIDDEN))
			print_row(&t->rows[i], out);
	}
}

/* Literal where that shows it better, as it does for regular expressions. */
static void print_string(const char *text, FILE *out)
{
	bool is_plain = !strchr(text, '\'');

	for (const char *p = text; *p && is_plain; p++)
		is_plain = (unsigned char)*p >= ' ' && *p != 0x7f;
	if (is_plain && strpbrk(text, "\\\"")) {
		fprintf(out, "'%s'", text);
		return;
	}
	fputc('"', out);
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			fprintf(out, "\\u%04x", (unsigned char)*text);
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
	fputc('"', out);
}

/* Nothing was given, and nothing stands in its place. */
static bool is_unset(const struct option_row *row, const void *value)
{
	switch (row->type) {
	case OPTION_TEXT:
		return !*(char *const *)value;
	case OPTION_COUNT:
	case OPTION_SIZE:
	case OPTION_TIME:
		return !row->value && !*(const uint64_t *)value;
	case OPTION_PERCENT:
		return !row->value && *(const double *)value == 0;
	case OPTION_LIMIT:
		return !row->value && ((const struct option_limit *)value)->percent == 0;
	default:
		return false;
	}
}

static void print_value(const struct option_row *row, const void *value, FILE *out)
{
	const struct option_numbers *numbers = value;
	const struct option_limit *limit = value;
	const struct texts *texts = value;
	char buf[UNITS_BUF];

	switch (row->type) {
	case OPTION_HEADING:
		break;
	case OPTION_FLAG:
		fputs(*(const bool *)value ? "true" : "false", out);
		break;
	case OPTION_TEXT:
		print_string(*(char *const *)value, out);
		break;
	case OPTION_TEXTS:
		fputc('[', out);
		for (size_t i = 0; i < texts->cnt; i++) {
			fputs(i ? ", " : "", out);
			print_string(texts->data[i], out);
		}
		fputc(']', out);
		break;
	case OPTION_NUMBERS:
		fputc('[', out);
		for (size_t i = 0; i < numbers->cnt; i++)
			fprintf(out, "%s%llu", i ? ", " : "", (unsigned long long)numbers->data[i]);
		fputc(']', out);
		break;
	case OPTION_COUNT:
		fprintf(out, "%llu", (unsigned long long)*(const uint64_t *)value);
		break;
	case OPTION_SIZE:
	case OPTION_TIME:
		fprintf(out, "\"%s\"",
			option_format_number(row->type, *(const uint64_t *)value, buf));
		break;
	case OPTION_PERCENT:
		fprintf(out, "%.15g", *(const double *)value);
		break;
	case OPTION_LIMIT:
		if (limit->is_strict)
			fprintf(out, "\"%.15g!\"", limit->percent);
		else
			fprintf(out, "%.15g", limit->percent);
		break;
	}
}

void option_print_settings(const struct option_table *t, const void *settings, FILE *out)
{
	for (size_t i = 0; i < t->cnt; i++) {
		const struct option_row *row = &t->rows[i];
		const void *value = (const char *)settings + row->at;

		if (row->type == OPTION_HEADING ||
		    row->flags & (OPTION_NOT_IN_FILE | OPTION_HIDDEN) || is_unset(row, value))
			continue;
		fprintf(out, "%s = ", row->name);
		print_value(row, value, out);
		fputc('\n', out);
	}
}
