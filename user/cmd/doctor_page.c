/* SPDX-License-Identifier: MIT */
/*
 * cmd/doctor_page.c - writes the sections of the doctor's text. Columns are as wide as their cells; of a name in the
 * first one that does not fit its end is shown; the last one is wrapped. Any cell may have names of any bytes.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/units.h"
#include "base/vec.h"
#include "cmd/doctor.h"

#define CELLS_MAX 6
#define GAP 2 /* columns between cells, and before the first */
#define FIRST_MIN 10 /* columns of a first cell that is cut */
#define LAST_MIN 13 /* columns that are kept for the last cell, if it is as wide */

struct row {
	enum doctor_line line;
	char *cell[CELLS_MAX];
};

struct section {
	char *title; /* NULL: none yet */
	size_t cell_cnt;
	VEC(struct row) rows;
};

/* Each line of the stream is its kind, its text, and a 0. */
void doctor_put(FILE *page, enum doctor_line line, const char *fmt, ...)
{
	va_list args;

	if (ftell(page))
		fputc('\0', page);
	fputc((int)line, page);
	va_start(args, fmt);
	vfprintf(page, fmt, args);
	va_end(args);
}

static void split(char *text, size_t cnt, struct row *ret)
{
	for (size_t i = 0; i < CELLS_MAX; i++) {
		char *end = i + 1 < cnt ? strchr(text, '\t') : NULL;

		ret->cell[i] = text;
		text = end ? end + 1 : text + strlen(text);
		if (end)
			*end = '\0';
		make_printable(ret->cell[i]);
	}
}

/* Write words from column `at` on, further lines indented by `indent`. */
static void write_wrapped(FILE *out, int columns, int at, int indent, const char *text)
{
	const char *between = "";

	while (*(text += strspn(text, " "))) {
		int len = (int)word_with_unit(text);

		if (*between && at + 1 + len > columns) {
			fprintf(out, "\n%*s", indent, "");
			at = indent;
			between = "";
		}
		at += fprintf(out, "%s%.*s", between, len, text);
		text += len;
		between = " ";
	}
	fputc('\n', out);
}

static void write_row(const struct row *row, size_t last, const int *width, int columns, FILE *out)
{
	int at = GAP;

	while (last && !row->cell[last][0])
		last--;
	fprintf(out, "%*s", GAP, "");
	for (size_t i = 0; i < last; i++) {
		int len = (int)strlen(row->cell[i]);

		if (len > width[i])
			fprintf(out, "...%s%*s", row->cell[i] + len - width[i] + 3, GAP, "");
		else
			fprintf(out, "%-*s", width[i] + GAP, row->cell[i]);
		at += width[i] + GAP;
	}
	write_wrapped(out, columns, at, at, row->cell[last]);
}

/* The first column has what the others leave. */
static void set_widths(const struct section *s, int columns, int width[CELLS_MAX])
{
	const struct row *row;
	int left = columns - GAP;

	vec_each(&s->rows, row)
		for (size_t i = 0; i < s->cell_cnt; i++)
			if ((int)strlen(row->cell[i]) > width[i])
				width[i] = (int)strlen(row->cell[i]);
	if (width[s->cell_cnt - 1] > LAST_MIN)
		width[s->cell_cnt - 1] = LAST_MIN;
	for (size_t i = 1; i < s->cell_cnt; i++)
		left -= width[i] + GAP;
	if (width[0] > left)
		width[0] = left > FIRST_MIN ? left : FIRST_MIN;
}

/* A section of which nothing is shown has no title either; the first one is the verdict. */
static void write_section(struct section *s, bool is_first, int columns, FILE *out)
{
	int width[CELLS_MAX] = { 0 };
	const struct row *row;

	if (is_first || (s->rows.cnt && s->rows.data[s->rows.cnt - 1].line != DOCTOR_HEAD)) {
		if (!is_first)
			fputc('\n', out);
		make_printable(s->title);
		write_wrapped(out, columns, 0, GAP, s->title);
		set_widths(s, columns, width);
		vec_each(&s->rows, row)
			write_row(row, s->cell_cnt - 1, width, columns, out);
	}
	s->rows.cnt = 0;
	s->cell_cnt = 2;
}

int doctor_write_page(char *text, size_t bytes, int columns, bool is_verbose, FILE *out)
{
	struct section s = { .cell_cnt = 2 };
	bool is_first = true;
	int err = 0;

	for (char *at = text, *next; at < text + bytes && !err; at = next) {
		struct row row = { .line = (enum doctor_line) * at++ };

		next = at + strlen(at) + 1;
		if (row.line == DOCTOR_TITLE) {
			if (s.title)
				write_section(&s, is_first, columns, out);
			is_first = !s.title;
			s.title = at;
			continue;
		}
		if (row.line == DOCTOR_HEAD) {
			s.cell_cnt = 1;
			for (const char *c = at; (c = strchr(c, '\t')); c++)
				s.cell_cnt++;
		}
		split(at, s.cell_cnt, &row);
		if (row.line != DOCTOR_DETAIL || is_verbose)
			err = vec_push(&s.rows, row);
	}
	if (s.title)
		write_section(&s, is_first, columns, out);
	vec_release(&s.rows);
	return err;
}
