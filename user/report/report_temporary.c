/* SPDX-License-Identifier: MIT */
/*
 * report_temporary.c - who allocates most blocks that live less than a millisecond, as a table for
 * people; and one line on a stack's blocks.
 *
 * The share is of all allocated blocks, not of freed ones: a stack that frees one block of a
 * hundred at once and keeps the others must not appear as all temporary. A live block younger than
 * a millisecond may still become temporary; at the end of a recording such blocks are few.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "report/report_places.h"
#include "report/report_rows.h"
#include "report/report_text.h"

/* Columns in front of a name. */
#define CELL_COLUMNS 58

static double percent(double share)
{
	return 100 * share;
}

/* "98.1 to 99.9", "exact" */
static char *format_share_interval(const struct report *r, const struct bin_share *s, char *buf,
				   size_t buf_bytes)
{
	if (s->low < s->high)
		snprintf(buf, buf_bytes, "%.1f to %.1f", percent(s->low), percent(s->high));
	else
		snprintf(buf, buf_bytes, "%s", r->is_lossy ? "" : "exact");
	return buf;
}

/* Tasks have only sums of what they allocated. If frees were not watched all the time, nobody knows
 * of some blocks whether they were temporary. */
bool report_temporary(const struct report *r, const struct report_row *row, struct bin_share *ret)
{
	if (!r->has_lifetimes || r->p->recording.inuse == RECORDING_INUSE_SINCE ||
	    !row->bins.is_known || r->opts->by == REPORT_BY_INSTANCE || report_is_by_class(r->opts))
		return false;
	return bin_share(&row->bins, bin_temporary_objects(&row->bins), ret);
}

static char *most_size_name(const struct bin_sums *sums, char buf[BIN_NAME_BUF])
{
	uint32_t most = bin_most_size(sums);

	if (most < HT_BIN_SIZE_CNT)
		return bin_name(HT_BIN_SIZE + most, buf);
	snprintf(buf, BIN_NAME_BUF, "?");
	return buf;
}

static void put_row(const struct report *r, const struct report_row *row,
		    const struct report_names *names, FILE *out)
{
	char count[UNITS_BUF], interval[32] = "", share[16] = "?", size[BIN_NAME_BUF];
	char bytes[UNITS_BUF];
	struct bin_share s;

	if (report_temporary(r, row, &s)) {
		snprintf(share, sizeof(share), "%.1f%%", percent(s.share));
		format_share_interval(r, &s, interval, sizeof(interval));
	}
	fprintf(out, "%9s %7s %-14s  %-14s %9s  ",
		format_count(row->temporary_objects, count, sizeof(count)), share, interval,
		most_size_name(&row->bins, size),
		format_bytes(r->is_alloc ? report_value(row) : report_alloc(row), bytes,
			     sizeof(bytes)));
	report_names_put_row(names, r, row, out);
}

static bool has_temporary(const struct report_row *row)
{
	return row->temporary_objects > 0;
}

static int put_table(const struct report *r, const struct report_places *rows, size_t row_cap,
		     FILE *out)
{
	size_t shown_cnt = row_cap && row_cap < rows->cnt ? row_cap : rows->cnt;
	struct report_names names;
	int err = report_names_of(&names, r, CELL_COLUMNS, rows, shown_cnt);

	report_paint(r, REPORT_BOLD, out);
	fprintf(out, "%9s %7s %-14s  %-14s %9s  WHERE", "TEMPORARY", "OF ALL", "95 %", "MOST HAVE",
		"ALLOCATED");
	report_paint(r, REPORT_PLAIN, out);
	fputc('\n', out);
	for (size_t i = 0; i < shown_cnt && !err; i++)
		put_row(r, &rows->data[i], &names, out);
	if (shown_cnt < rows->cnt)
		fprintf(out, "%*sand %zu more: --top 0\n", CELL_COLUMNS, "", rows->cnt - shown_cnt);
	report_names_release(&names);
	return err;
}

int report_write_temporary(const struct report *r, size_t row_cap, FILE *out)
{
	struct report_places rows = { 0 };
	int err = report_find_ranked(r, has_temporary, &rows);

	if (err)
		goto out;
	report_put_head(r, out);
	if (rows.cnt)
		err = put_table(r, &rows, row_cap, out);
	report_put_wrapped(rows.cnt ?
				   "temporary: blocks that were freed within 1 ms; of all blocks "
				   "that were allocated while recording" :
				   "No block that was sampled was freed within 1 ms.",
			   2, report_columns(r), out);
out:
	vec_release(&rows);
	return err;
}

void report_put_blocks(const struct report *r, const struct report_row *row, FILE *out)
{
	char count[UNITS_BUF], size[BIN_NAME_BUF];
	double alloc = bin_sized_objects(&row->bins);
	struct bin_share s;

	if (!(alloc > 0))
		return;
	fprintf(out, "        %s allocated block%s:", format_count(alloc, count, sizeof(count)),
		alloc == 1 ? "" : "s");
	if (report_temporary(r, row, &s))
		fprintf(out, " %.1f%% lived under 1 ms,", percent(s.share));
	fprintf(out, " most have %s\n", most_size_name(&row->bins, size));
}
