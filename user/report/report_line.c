/* SPDX-License-Identifier: MIT */
/* report_line.c - lines of a report for people: wrapped, and painted for a terminal. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "report/report_rows.h"
#include "report/report_text.h"

void report_line_add(struct report_line *l, const char *sep, const char *fmt, ...)
{
	size_t begin = l->used, width, columns = l->columns;
	char part[REPORT_FIT_BUF];
	va_list args;

	va_start(args, fmt);
	vsnprintf(part, sizeof(part), fmt, args);
	va_end(args);
	width = report_width(part);
	if (begin && begin + report_width(sep) + width > columns) {
		/* "; " and ", " end the line, as in a sentence */
		fprintf(l->out, "%.*s\n%*s", (int)strcspn(sep, " "), sep, (int)l->indent, "");
		l->used = l->indent;
	} else if (begin) {
		fputs(sep, l->out);
		l->used += report_width(sep);
	}
	fputs(part, l->out);
	l->used += width;
}

void report_line_end(struct report_line *l)
{
	if (l->used)
		fputc('\n', l->out);
	l->used = 0;
}

void report_put_wrapped(const char *text, size_t indent, size_t columns, FILE *out)
{
	struct report_line l = { .out = out, .columns = columns, .indent = indent };
	char word[REPORT_FIT_BUF], harmless[REPORT_FIT_BUF];

	while (*text) {
		size_t n = strcspn(text, " ");

		snprintf(word, sizeof(word), "%.*s", (int)n, text);
		report_line_add(&l, " ", "%s", report_fit_name(word, sizeof(word), harmless));
		text += n + strspn(text + n, " ");
	}
	report_line_end(&l);
}

void report_paint(const struct report *r, enum report_paint paint, FILE *out)
{
	static const char *const codes[] = {
		[REPORT_PLAIN] = "\033[0m",
		[REPORT_BOLD] = "\033[1m",
		[REPORT_DIM] = "\033[2m",
	};

	if (r->opts->has_color)
		fputs(codes[paint], out);
}
