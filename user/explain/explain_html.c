/* SPDX-License-Identifier: MIT */
/* explain/explain_html.c - an explanation as one page for a browser: the verdict, a bar of the rows, the rows. Nothing is fetched. */
#include "explain/explain.h"

#include "base/printable.h"
#include "base/units.h"
#include "http/pages.h"

#define NOTE_COLUMNS 10000 /* the browser breaks lines */
#define PIN_COLUMNS 100

static void put_text(const char *text, FILE *out)
{
	markup_put(text, strlen(text), out);
}

static void put_paragraph(const char *tag, const char *text, FILE *out)
{
	if (!text[0])
		return;
	fprintf(out, "<%s>", tag);
	put_text(text, out);
	fprintf(out, "</%s>\n", tag);
}

static const char *bytes_of(double bytes, char buf[UNITS_BUF])
{
	return format_bytes(bytes, buf, UNITS_BUF);
}

static double share_of(const struct explanation *x, const struct row *row)
{
	return x->rows.rss_bytes ? (double)row->bytes / (double)x->rows.rss_bytes : 0;
}

static void put_head(const struct explanation *x, FILE *out)
{
	char bytes[UNITS_BUF], took[UNITS_BUF];

	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
	      out);
	put_text(x->comm, out);
	fprintf(out,
		" (PID %d): resident memory</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n",
		x->pid, page_files.style);
	fputs("<div class=\"head\"><h1>", out);
	put_text(x->comm, out);
	fprintf(out,
		"</h1><small>PID %d</small></div>\n<p class=\"path\">%s resident, read in %s by heaptap explain</p>\n",
		x->pid, bytes_of((double)x->rows.rss_bytes, bytes),
		format_duration(x->took_ns, took, sizeof(took)));
}

static void put_bar(const struct explanation *x, FILE *out)
{
	char bytes[UNITS_BUF];

	fputs("<div class=\"rowbar\">", out);
	for (size_t i = 0; i < ROW_CNT; i++) {
		const struct row *row = &x->rows.list[i];

		if (row->bytes <= 0)
			continue;
		fprintf(out, "<i class=\"r-%s\" style=\"flex-grow:%.4f\" title=\"",
			row_name(row->kind), share_of(x, row));
		put_text(row_label(row->kind), out);
		fprintf(out, ": %s\"></i>", bytes_of((double)row->bytes, bytes));
	}
	fputs("</div>\n", out);
}

/* Of several. */
static void put_parts(const struct row *row, FILE *out)
{
	char bytes[UNITS_BUF];

	fputs("<td class=\"name\">", out);
	for (size_t i = 0; i < ROW_PARTS && row->parts[i].bytes && row->part_cnt > 1; i++) {
		const char *name = row->parts[i].name, *base = strrchr(name, '/');

		fputs(i ? ", " : "", out);
		put_text(base ? base + 1 : name, out);
		fprintf(out, "%s%s", name[0] ? " " : "",
			bytes_of((double)row->parts[i].bytes, bytes));
	}
}

static void put_numbers(const struct explanation *x, double bytes, double share, double change,
			FILE *out)
{
	char text[UNITS_BUF], percent[UNITS_BUF];

	fprintf(out, "<tr><td class=\"num\">%s<td class=\"num\">%s%s %%", bytes_of(bytes, text),
		share < 0 ? "-" : "",
		format_percent(share < 0 ? -share : share, percent, sizeof(percent)));
	if (x->change.is_known)
		fprintf(out, "<td class=\"num\">%s%s", change > 0 ? "+" : "",
			bytes_of(change, text));
}

static void put_rows(const struct explanation *x, FILE *out)
{
	fprintf(out,
		"<div class=\"sheet wide-table\"><table>\n<thead><tr><th class=\"num\">Resident<th class=\"num\">Share%s"
		"<th>What<th>Largest</thead>\n<tbody>\n",
		x->change.is_known ? "<th class=\"num\">Change" : "");
	for (size_t i = 0; i < ROW_CNT; i++) {
		const struct row *row = &x->rows.list[i];
		int64_t change = x->change.rows[row->kind];

		if (!row->bytes && !change)
			continue;
		put_numbers(x, (double)row->bytes, share_of(x, row), (double)change, out);
		fprintf(out, "<td class=\"name\"><span class=\"row-what r-%s\"><i></i>",
			row_name(row->kind));
		put_text(row_label(row->kind), out);
		fputs("</span>", out);
		put_parts(row, out);
		fputc('\n', out);
	}
	put_numbers(x, (double)x->rows.rss_bytes, 1, (double)x->change.rss_bytes, out);
	fputs("<td class=\"name\">total (RSS)<td>\n</tbody></table></div>\n", out);
}

/* What a function prints as text. */
static int put_printed(const struct explanation *x, int columns, const char *tag,
		       void (*print)(const struct explanation *, int, FILE *), FILE *out)
{
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);

	if (!f)
		return -ENOMEM;
	print(x, columns, f);
	if (fclose(f)) {
		free(text);
		return -ENOMEM;
	}
	put_paragraph(tag, text, out);
	free(text);
	return 0;
}

int explain_print_html(const struct explanation *x, bool shows_pins, FILE *out)
{
	int err;

	put_head(x, out);
	fputs("<div class=\"chart\">\n", out);
	put_paragraph("h2", x->verdict.text, out);
	put_paragraph("p", x->change.text, out);
	put_paragraph("p", x->verdict.advice, out);
	put_bar(x, out);
	fputs("</div>\n", out);
	put_rows(x, out);
	fputs("<div class=\"lines\">\n", out);
	err = put_printed(x, NOTE_COLUMNS, "p", explain_print_notes, out);
	fputs("</div>\n", out);
	if (!err && shows_pins)
		err = put_printed(x, PIN_COLUMNS, "pre", explain_print_pins, out);
	fputs("</main>\n</body>\n</html>\n", out);
	return err;
}
