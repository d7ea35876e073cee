/* SPDX-License-Identifier: MIT */
/* option_print.c - --help and the configuration in effect, of option.h. */

#include "cmd/option.h"

#define HELP_COLUMN_MAX 26
#define HELP_WIDTH 98

struct help {
	FILE *out;
	int begin; /* the column where the help texts begin */
	int column; /* column of what is written next */
};

/* Write "  -r, --rate BYTES" or "      --frames[=N]". Returns its length. */
static int format_label(const struct option_row *row, char *buf, size_t buf_bytes)
{
	const char *begin = row->flags & OPTION_MAY_HAVE_VALUE ? "[=" : " ";
	const char *end = row->flags & OPTION_MAY_HAVE_VALUE ? "]" : "";
	char letter[] = { '-', row->letter, ',', '\0' };

	return snprintf(buf, buf_bytes, "  %3s --%s%s%s%s", row->letter ? letter : "", row->name,
			row->arg ? begin : "", row->arg ? row->arg : "", row->arg ? end : "");
}

/* Print words; a word that does not fit goes to the next line. */
static void print_words(struct help *h, const char *text)
{
	int len;

	for (text += strspn(text, " "); *text; text += len, text += strspn(text, " ")) {
		len = (int)strcspn(text, " ");
		if (h->column > h->begin && h->column + 1 + len > HELP_WIDTH) {
			fprintf(h->out, "\n%*s", h->begin, "");
			h->column = h->begin;
		}
		h->column += fprintf(h->out, "%s%.*s", h->column > h->begin ? " " : "", len, text);
	}
}

static void print_row(struct help *h, const struct option_row *row)
{
	char label[64], value[96];

	h->column = format_label(row, label, sizeof(label));
	fputs(label, h->out);
	if (h->column > h->begin - 2) { /* too long: the help begins on the next line */
		fputc('\n', h->out);
		h->column = 0;
	}
	h->column += fprintf(h->out, "%*s", h->begin - h->column, "");
	print_words(h, row->help);
	snprintf(value, sizeof(value), "(default: %s)", row->value);
	if (row->value)
		print_words(h, value);
	fputc('\n', h->out);
}

/* As far left as the labels allow, not counting the few long ones. */
static int find_begin(const struct option_table *t)
{
	char label[64];
	int begin = 0;

	for (size_t i = 0; i < t->cnt; i++) {
		int len = t->rows[i].type == OPTION_HEADING || t->rows[i].flags & OPTION_HIDDEN ?
				  0 :
				  format_label(&t->rows[i], label, sizeof(label)) + 2;

		if (len > begin && len <= HELP_COLUMN_MAX)
			begin = len;
	}
	return begin;
}

void option_print_help(const struct option_table *t, FILE *out)
{
	struct help h = { .out = out, .begin = find_begin(t) };

	for (size_t i = 0; i < t->cnt; i++) {
		if (t->rows[i].type == OPTION_HEADING)
			fprintf(out, "\n%s:\n", t->rows[i].help);
		else if (!(t->rows[i].flags & OPTION_HIDDEN))
			print_row(&h, &t->rows[i]);
	}
}

/* As a literal where that is easier to read, such as for regular expressions. */
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

/* Is there no given value and no default? */
static bool is_unset(const struct option_row *row, const void *value)
{
	switch (row->type) {
	case OPTION_TEXT:
		return !*(char *const *)value;
	case OPTION_CHOICE:
		return !row->value && !*(const int *)value;
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
	case OPTION_ASK:
		break;
	case OPTION_CHOICE:
		print_string(row->choices[*(const int *)value], out);
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

		if (!option_is_in_file(row) || is_unset(row, value))
			continue;
		fprintf(out, "%s = ", row->name);
		print_value(row, value, out);
		fputc('\n', out);
	}
}
