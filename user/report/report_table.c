/* SPDX-License-Identifier: MIT */
/*
 * report_table.c - the columns of all tables for people. Which of them a table wants is its caller's choice; one in
 * which no row has anything is left out. Each is as wide as its content, and the name of the row follows them.
 *
 * The share of temporary blocks, which live less than a millisecond, is of all allocated blocks, not of freed ones: a
 * stack that frees one block of a hundred at once and keeps the others must not appear as all temporary. A live block
 * younger than a millisecond may still become temporary; at the end of a recording such blocks are few.
 */

#include "base/units.h"
#include "report/report.h"
#include "report/report_places.h"
#include "report/report_rows.h"
#include "report/report_text.h"

/*
 * What grows: the cells of a table for people, and one sentence.
 *
 * Stacks charged to the same place are one row, as in the other text by stack. So what leaks
 * through many callers of one function is one growing row, with all its samples.
 */

/* "+10.1 KiB/s" */
static char *format_rate(double bytes_per_s, char buf[REPORT_INTERVAL_BUF])
{
	char text[UNITS_BUF];

	format_bytes(fabs(bytes_per_s), text, sizeof(text));
	snprintf(buf, REPORT_INTERVAL_BUF, "%s%s/s",
		 bytes_per_s > 0 ? "+" :
		 bytes_per_s < 0 ? "-" :
				   "",
		 text);
	return buf;
}

/* Both ends in one unit: "+7.9 +12.5 KiB/s". */
static char *format_interval(const struct growth *g, char buf[REPORT_INTERVAL_BUF])
{
	double larger = fmax(fabs(g->low), fabs(g->high)), unit = 1;
	char text[UNITS_BUF];
	const char *word;

	while (larger / unit >= 1024)
		unit *= 1024;
	format_bytes(larger, text, sizeof(text));
	word = strrchr(text, ' ');
	if (g->low == g->high)
		snprintf(buf, REPORT_INTERVAL_BUF, "exact");
	else
		snprintf(buf, REPORT_INTERVAL_BUF, "%+.3g %+.3g%s/s", g->low / unit, g->high / unit,
			 word ? word : "");
	return buf;
}

static void format_verdict(const struct growth *g, char buf[REPORT_INTERVAL_BUF])
{
	bool is_minutes = g->more_s >= 180;

	snprintf(buf, REPORT_INTERVAL_BUF, "%s",
		 g->verdict == GROWTH_GROWS  ? "grows" :
		 g->verdict == GROWTH_STEADY ? "steady" :
					       "?");
	if (g->verdict == GROWTH_UNKNOWN && g->more_s > 0)
		snprintf(buf, REPORT_INTERVAL_BUF, "%s %.0f %s%s", g->has_grown ? "grew?" : "?",
			 is_minutes ? g->more_s / 60 : g->more_s, is_minutes ? "min" : "s",
			 g->has_grown ? "" : " more");
}

/* What the table by growth has of its own. */
static char *report_format_growth(const struct report *r, const struct report_row *row,
				  enum report_cell cell, char *buf)
{
	struct growth g;
	bool is_known = report_growth(r, row, 1, &g);

	if (cell == REPORT_CELL_VERDICT)
		format_verdict(&g, buf);
	else if (cell == REPORT_CELL_GROWTH_INTERVAL && is_known)
		format_interval(&g, buf);
	else if (cell == REPORT_CELL_GROWTH && is_known)
		format_rate(g.bytes_per_s, buf);
	else
		snprintf(buf, REPORT_INTERVAL_BUF, "%s",
			 cell == REPORT_CELL_GROWTH ? "unknown" : "");
	return buf;
}

/* A row that holds nothing at the end does not grow. */
static bool report_row_has_inuse(const struct report_row *row)
{
	return row->value || row->estimate.samples;
}

static void report_put_growth_legend(const struct report *r, const struct report_row *rows,
				     size_t cnt, FILE *out)
{
	bool has_grown = false, has_unknown = false;
	struct growth g;

	for (size_t i = 0; i < cnt; i++) {
		report_growth(r, &rows[i], 1, &g);
		has_grown |= g.verdict == GROWTH_UNKNOWN && g.has_grown;
		has_unknown |= g.verdict == GROWTH_UNKNOWN && !g.has_grown;
	}
	if (has_grown)
		report_put_wrapped(
			"grew? growth slowed down, or old blocks are being freed: it may only be "
			"warming up; record for about this much longer",
			2, report_columns(r), out);
	if (has_unknown)
		report_put_wrapped(
			"? inconclusive: record for about this much longer, or with a finer --rate",
			2, report_columns(r), out);
}

/* The number of rows searched and of growing rows, and the one that grows most. */
struct finding {
	size_t row_cnt, grows_cnt;
	struct growth growth;
	char name[REPORT_GROWS_BUF / 2];
};

static void name_row(const struct report *r, const struct report_row *row, struct finding *ret)
{
	struct report_named_place place;
	char text[REPORT_FIT_BUF];

	if (r->opts->by == REPORT_BY_SCOPE) {
		report_fit_name(strset_get(r->names, row->scope.path ? row->scope.path : row->name),
				80, text);
		snprintf(ret->name, sizeof(ret->name), "scope %.400s", text);
		return;
	}
	report_name_place(r, row, &place);
	snprintf(ret->name, sizeof(ret->name), "%.480s", report_fit_named(&place.own, 80, text));
}

static void find_in(const struct report *r, const struct report_places *rows, size_t row_cnt,
		    struct finding *ret)
{
	for (size_t i = 0; i < rows->cnt; i++) {
		struct growth g;

		if (!report_growth(r, &rows->data[i], row_cnt, &g) || g.verdict != GROWTH_GROWS)
			continue;
		if (!ret->grows_cnt || g.bytes_per_s > ret->growth.bytes_per_s) {
			report_growth(r, &rows->data[i], 1, &ret->growth);
			name_row(r, &rows->data[i], ret);
		}
		ret->grows_cnt++;
	}
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
	return report_compare_rows(a, b, ctx);
}

/*
 * Find the rows for a table of its own: those that is_about() accepts, by report_compare_rows().
 * Stacks of one place are one row. 0 or -ENOMEM.
 */
static int report_find_ranked(const struct report *r,
			      bool (*is_about)(const struct report_row *row),
			      struct report_places *ret)
{
	const struct report_row *row;
	size_t kept = 0;
	int err = 0;

	if (r->opts->by == REPORT_BY_STACK)
		err = report_find_places(r, ret);
	else
		vec_each(&r->rows, row)
			if (!err)
				err = vec_push(ret, *row);
	for (size_t i = 0; i < ret->cnt; i++) {
		report_rank(r, &ret->data[i]);
		if (is_about(&ret->data[i]))
			ret->data[kept++] = ret->data[i];
	}
	ret->cnt = kept;
	if (!err && kept)
		qsort_r(ret->data, kept, sizeof(*ret->data), compare_rows, (void *)r);
	return err;
}

/* Search stacks first. A scope is named if it is not known which of its stacks grows. */
int report_grows(const struct profile *p, char buf[REPORT_GROWS_BUF])
{
	static const enum report_by by[] = { REPORT_BY_STACK, REPORT_BY_SCOPE };
	struct report_options opts[2] = { 0 };
	struct report_places rows[2] = { 0 };
	struct report *r[2] = { 0 };
	struct finding found = { 0 };
	char rate[REPORT_INTERVAL_BUF], interval[REPORT_INTERVAL_BUF], more[32] = "";
	size_t row_cnt = 0, cnt = report_has_scopes(p) ? 2 : 1;
	int err = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < cnt && !err; i++) {
		opts[i].by = by[i];
		opts[i].format = REPORT_JSON; /* so that no row is folded */
		opts[i].sort = REPORT_SORT_GROWTH;
		err = report_open(p, &opts[i], &r[i]);
		if (!err)
			err = report_find_ranked(r[i], report_row_has_inuse, &rows[i]);
		row_cnt += rows[i].cnt;
	}
	for (size_t i = 0; i < cnt && !err && !found.grows_cnt; i++)
		find_in(r[i], &rows[i], row_cnt > 1 ? row_cnt : 2, &found);
	if (!err && found.grows_cnt) {
		if (found.grows_cnt > 1)
			snprintf(more, sizeof(more), "; and %zu more", found.grows_cnt - 1);
		snprintf(buf, REPORT_GROWS_BUF, "Grows: %s, %s (95 %%: %s)%s", found.name,
			 format_rate(found.growth.bytes_per_s, rate),
			 format_interval(&found.growth, interval), more);
	}
	for (size_t i = 0; i < cnt; i++) {
		vec_release(&rows[i]);
		report_close(r[i]);
	}
	return err;
}

#define NAME_COLUMNS_GOOD 26
#define CELL_BUF REPORT_INTERVAL_BUF

static const struct {
	const char *title; /* NULL: the value's */
	bool is_left;
} columns[REPORT_CELL_CNT] = {
	[REPORT_CELL_TEMPORARY] = { .title = "TEMPORARY" },
	[REPORT_CELL_OF_ALL] = { .title = "OF ALL" },
	[REPORT_CELL_OF_ALL_INTERVAL] = { .title = "95 %", .is_left = true },
	[REPORT_CELL_MOST] = { .title = "MOST HAVE", .is_left = true },
	[REPORT_CELL_PINNED] = { .title = "PINNED" },
	[REPORT_CELL_PINNED_INTERVAL] = { .title = "95 % INTERVAL", .is_left = true },
	[REPORT_CELL_GROWTH] = { .title = "GROWTH" },
	[REPORT_CELL_GROWTH_INTERVAL] = { .title = "95 % INTERVAL", .is_left = true },
	[REPORT_CELL_MARK] = { .title = "" },
	[REPORT_CELL_INTERVAL] = { .title = "+- 95 %", .is_left = true },
	[REPORT_CELL_RATE] = { .title = "A MINUTE" },
	[REPORT_CELL_PEAK] = { .title = "PEAK" },
	[REPORT_CELL_WHEN] = { .title = "AT (UTC)" },
	[REPORT_CELL_ITSELF] = { .title = "ITSELF" },
	[REPORT_CELL_BLOCKS] = { .title = "BLOCKS" },
	[REPORT_CELL_OF_BLOCKS] = { .title = "OF BLOCKS" },
	[REPORT_CELL_SHARE] = { .title = "SHARE" },
	[REPORT_CELL_CUMULATIVE] = { .title = "CUMULATIVE" },
	[REPORT_CELL_ALLOC] = { .title = "ALLOCATED" },
	[REPORT_CELL_VERDICT] = { .title = "VERDICT", .is_left = true },
	[REPORT_CELL_STATE] = { .title = "STATE", .is_left = true },
	[REPORT_CELL_TASK] = { .title = "TASK" },
};

static char *format_when(const struct report *r, const struct report_peak *p, char *buf)
{
	time_t when = p->time_ns / 1000000000, now = r->p->time_ns / 1000000000;
	bool is_same_day = when / 86400 == now / 86400;
	struct tm tm;

	if (!p->is_known || p->time_ns <= 0 || !gmtime_r(&when, &tm) ||
	    !strftime(buf, CELL_BUF, is_same_day ? "%H:%M:%S" : "%b %d", &tm))
		buf[0] = '\0';
	return buf;
}

static char *format_peak(const struct report_peak *p, char *buf)
{
	char value[UNITS_BUF];

	buf[0] = '\0';
	if (p->is_known)
		snprintf(buf, CELL_BUF, "%s%s", p->is_minimum ? ">" : "",
			 format_bytes((double)p->bytes, value, sizeof(value)));
	return buf;
}

/* Tasks have only sums of what they allocated. If frees were not tracked all the time, nobody knows
 * of some blocks whether they were temporary. */
bool report_temporary(const struct report *r, const struct report_row *row, struct bin_share *ret)
{
	if (!r->has_lifetimes || r->p->recording.inuse == RECORDING_INUSE_SINCE ||
	    !row->bins.is_known || r->opts->by == REPORT_BY_INSTANCE || report_is_by_class(r->opts))
		return false;
	return bin_share(&row->bins, bin_temporary_objects(&row->bins), ret);
}

/* The bin of the size that most objects have; HT_BIN_SIZE_CNT: no size is known. */
static uint32_t bin_most_size(const struct bin_sums *sums)
{
	uint32_t most = HT_BIN_SIZE_CNT;

	for (uint32_t i = 0; i < HT_BIN_SIZE_CNT; i++)
		if (sums->objects[i] > (most < HT_BIN_SIZE_CNT ? sums->objects[most] : 0))
			most = i;
	return most;
}

static char *most_size_name(const struct bin_sums *sums, char buf[BIN_NAME_BUF])
{
	uint32_t most = bin_most_size(sums);

	if (most < HT_BIN_SIZE_CNT)
		return bin_name(HT_BIN_SIZE + most, buf);
	snprintf(buf, BIN_NAME_BUF, "?");
	return buf;
}

static char *format_temporary(const struct report *r, const struct report_row *row,
			      enum report_cell cell, char *buf)
{
	struct bin_share s;
	bool is_known = report_temporary(r, row, &s);

	if (cell == REPORT_CELL_TEMPORARY)
		return format_count(row->temporary_objects, buf, UNITS_BUF);
	if (cell == REPORT_CELL_MOST)
		return most_size_name(&row->bins, buf);
	snprintf(buf, REPORT_INTERVAL_BUF, "%s", cell == REPORT_CELL_OF_ALL ? "?" : "");
	if (is_known && cell == REPORT_CELL_OF_ALL)
		snprintf(buf, REPORT_INTERVAL_BUF, "%.1f%%", 100 * s.share);
	else if (is_known && s.low < s.high)
		snprintf(buf, REPORT_INTERVAL_BUF, "%.1f%% to %.1f%%", 100 * s.low, 100 * s.high);
	else if (is_known && !r->is_lossy)
		snprintf(buf, REPORT_INTERVAL_BUF, "exact");
	return buf;
}

static bool has_temporary(const struct report_row *row)
{
	return row->temporary_objects > 0;
}

static bool pins_something(const struct report_row *row)
{
	return row->pinned.bytes > 0;
}

/* Never "exact": some blocks may have been allocated while the heap was read. */
static char *format_pinned_interval(const struct report_row *row, char *buf)
{
	char text[2][UNITS_BUF];
	double low, high;

	estimate_interval(&row->pinned, &low, &high);
	if (low < high)
		snprintf(buf, CELL_BUF, "%s to %s", format_bytes(low, text[0], UNITS_BUF),
			 format_bytes(high, text[1], UNITS_BUF));
	return buf;
}

static void put_pinned_legend(const struct report *r, FILE *out)
{
	const struct resident_row *row;
	char text[2][UNITS_BUF], words[256];
	double all = 0;

	vec_each(&r->p->resident.list, row)
		if (strstr(profile_text(r->p, row->name_str), "pinned"))
			all += (double)row->end_bytes;
	snprintf(words, sizeof(words),
		 "These blocks pin %s%s%s: free memory on their pages (jemalloc: slabs), divided "
		 "equally among the blocks there. It is returned only after they are freed.",
		 format_bytes(r->total.pinned.bytes, text[0], UNITS_BUF), all > 0 ? " of " : "",
		 all > 0 ? format_bytes(all, text[1], UNITS_BUF) : "");
	report_put_wrapped(words, 2, report_columns(r), out);
}

static char *format_cell(const struct report *r, const struct report_row *row,
			 enum report_cell cell, char *buf)
{
	static const char *const states[] = {
		[REPORT_STATE_UNKNOWN] = "",
		[REPORT_STATE_LIVE] = "live",
		[REPORT_STATE_EXITED] = "exited",
	};

	buf[0] = '\0';
	switch (cell) {
	case REPORT_CELL_VALUE:
		return report_format_value(r, report_value(row), buf);
	case REPORT_CELL_MARK:
		snprintf(buf, CELL_BUF, "%s", report_is_weak(r, row) ? "?" : "");
		return buf;
	case REPORT_CELL_INTERVAL:
		return report_format_unit_interval(r, row, buf);
	case REPORT_CELL_RATE:
		return isnan(report_per_minute(r, 0)) ?
			       buf :
			       format_bytes(report_per_minute(r, row->value), buf, CELL_BUF);
	case REPORT_CELL_PEAK:
		return format_peak(&row->peak, buf);
	case REPORT_CELL_WHEN:
		return format_when(r, &row->peak, buf);
	case REPORT_CELL_ITSELF:
		return report_format_value(r, (double)row->scope.exclusive.bytes, buf);
	case REPORT_CELL_BLOCKS:
		return format_count((double)row->objects, buf, CELL_BUF);
	case REPORT_CELL_OF_BLOCKS:
		snprintf(buf, CELL_BUF, "%.1f%%",
			 r->total.objects > 0 ?
				 100 * (double)row->objects / (double)r->total.objects :
				 0);
		return buf;
	case REPORT_CELL_SHARE:
		return report_format_share(r, row->value, buf);
	case REPORT_CELL_CUMULATIVE:
		return report_format_value(r, (double)row->cumulative, buf);
	case REPORT_CELL_ALLOC:
		return row->task.has_no_alloc ?
			       buf :
			       format_bytes(r->is_alloc ? report_value(row) : report_alloc(row),
					    buf, CELL_BUF);
	case REPORT_CELL_STATE:
		snprintf(buf, CELL_BUF, "%s", states[row->task.state]);
		return buf;
	case REPORT_CELL_TASK:
		if (row->task.is_task)
			snprintf(buf, CELL_BUF, "%" PRIu64, (uint64_t)row->task.id);
		return buf;
	case REPORT_CELL_PINNED:
		return format_bytes(row->pinned.bytes, buf, CELL_BUF);
	case REPORT_CELL_PINNED_INTERVAL:
		return format_pinned_interval(row, buf);
	case REPORT_CELL_GROWTH:
	case REPORT_CELL_GROWTH_INTERVAL:
	case REPORT_CELL_VERDICT:
		return report_format_growth(r, row, cell, buf);
	default:
		return format_temporary(r, row, cell, buf);
	}
}

static char *format_title(const struct report *r, enum report_cell cell, char *buf)
{
	const char *value = r->is_inuse ? "in use" : report_value_title(r);

	snprintf(buf, CELL_BUF, "%s", columns[cell].title ? columns[cell].title : "");
	if (cell == REPORT_CELL_VALUE)
		snprintf(buf, CELL_BUF, "%.10s", value);
	for (char *c = buf; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	return buf;
}

static bool has_cell(const struct report_table *t, enum report_cell cell)
{
	return t->wants[cell] && t->width[cell];
}

static size_t width_of(const struct report_table *t, enum report_cell cell)
{
	char title[CELL_BUF];
	size_t width = strlen(format_title(t->r, cell, title));

	return t->width[cell] > width ? t->width[cell] : width;
}

/* A mark stands at its value. */
static size_t gap_behind(const struct report_table *t, enum report_cell cell)
{
	return 1 + columns[cell].is_left -
	       (cell == REPORT_CELL_VALUE && has_cell(t, REPORT_CELL_MARK));
}

size_t report_table_columns(const struct report_table *t)
{
	size_t used = 0;

	for (int cell = 0; cell < REPORT_CELL_CNT; cell++)
		if (has_cell(t, cell))
			used += width_of(t, cell) + gap_behind(t, cell);
	return used;
}

void report_table_widen(struct report_table *t, const struct report_row *row)
{
	char text[CELL_BUF];

	for (int cell = 0; cell < REPORT_CELL_CNT; cell++) {
		size_t width =
			!t->wants[cell] ? 0 : report_width(format_cell(t->r, row, cell, text));

		if (width > t->width[cell])
			t->width[cell] = width;
	}
}

void report_table_fit(struct report_table *t)
{
	/* the first is dropped first */
	static const enum report_cell optional[] = {
		REPORT_CELL_SHARE,  REPORT_CELL_WHEN,  REPORT_CELL_BLOCKS,
		REPORT_CELL_ITSELF, REPORT_CELL_ALLOC,
	};

	for (size_t i = 0; i < sizeof(optional) / sizeof(*optional); i++)
		if (report_table_columns(t) + NAME_COLUMNS_GOOD > report_columns(t->r))
			t->wants[optional[i]] = false;
}

/* Numbers are right-aligned; intervals stand beside their values. */
static void put_cell(const struct report_table *t, enum report_cell cell, const char *text,
		     FILE *out)
{
	fprintf(out, columns[cell].is_left ? "%-*s" : "%*s", (int)width_of(t, cell), text);
	fprintf(out, "%*s", (int)gap_behind(t, cell), "");
}

void report_table_put_titles(const struct report_table *t, FILE *out)
{
	char text[CELL_BUF];

	for (int cell = 0; cell < REPORT_CELL_CNT; cell++)
		if (has_cell(t, cell))
			put_cell(t, cell, format_title(t->r, cell, text), out);
}

void report_table_put_row(const struct report_table *t, const struct report_row *row, FILE *out)
{
	char text[CELL_BUF];

	for (int cell = 0; cell < REPORT_CELL_CNT; cell++) {
		if (!has_cell(t, cell))
			continue;
		if (cell == REPORT_CELL_VALUE)
			report_paint(t->r, REPORT_BOLD, out);
		put_cell(t, cell, format_cell(t->r, row, cell, text), out);
		if (cell == REPORT_CELL_VALUE)
			report_paint(t->r, REPORT_PLAIN, out);
	}
}

/* The same for the first cnt rows: init, all of add, and put. */
static int report_names_of(struct report_names *t, const struct report *r, size_t used,
			   const struct report_places *rows, size_t cnt)
{
	struct report_named_place p;
	int err = report_names_init(t, r, used);

	for (size_t i = 0; i < cnt && !err; i++) {
		report_name_row(r, &rows->data[i], &p);
		err = report_names_add(t, &p);
	}
	return err;
}

static void report_names_put_row(const struct report_names *t, const struct report *r,
				 const struct report_row *row, FILE *out)
{
	struct report_named_place p;

	report_name_row(r, row, &p);
	report_names_put(t, &p, out);
}

/* Write a table by growth, temporary blocks or pinned memory, at most row_cap rows. Stacks of one place are one row. */
int report_write_ranked(const struct report *r, size_t row_cap, FILE *out)
{
	const bool is_growth = r->opts->sort == REPORT_SORT_GROWTH;
	const bool is_pinned = r->opts->sort == REPORT_SORT_PINNED;
	struct report_table t = { .r = r };
	struct report_places rows = { 0 };
	struct report_names names = { 0 };
	size_t cnt;
	int err = report_find_ranked(r,
				     is_growth ? report_row_has_inuse :
				     is_pinned ? pins_something :
						 has_temporary,
				     &rows);

	for (int cell = REPORT_CELL_TEMPORARY; cell <= REPORT_CELL_MOST; cell++)
		t.wants[cell] = !is_growth && !is_pinned;
	t.wants[REPORT_CELL_ALLOC] = !is_growth && !is_pinned;
	t.wants[REPORT_CELL_PINNED] = t.wants[REPORT_CELL_PINNED_INTERVAL] = is_pinned;
	t.wants[REPORT_CELL_BLOCKS] = is_pinned;
	t.wants[REPORT_CELL_GROWTH] = t.wants[REPORT_CELL_GROWTH_INTERVAL] = is_growth;
	t.wants[REPORT_CELL_VALUE] = is_growth || is_pinned;
	t.wants[REPORT_CELL_VERDICT] = is_growth;
	cnt = row_cap && row_cap < rows.cnt ? row_cap : rows.cnt;
	for (size_t i = 0; i < cnt; i++)
		report_table_widen(&t, &rows.data[i]);
	if (!err)
		err = report_names_of(&names, r, report_table_columns(&t), &rows, cnt);
	if (err)
		goto out;
	report_put_head(r, out);
	if (cnt) {
		report_table_put_titles(&t, out);
		fputs("WHERE\n", out);
	}
	for (size_t i = 0; i < cnt; i++) {
		report_table_put_row(&t, &rows.data[i], out);
		report_names_put_row(&names, r, &rows.data[i], out);
	}
	if (cnt < rows.cnt)
		fprintf(out, "%*sand %zu more: --top 0\n", (int)report_table_columns(&t), "",
			rows.cnt - cnt);
	if (is_growth)
		report_put_growth_legend(r, rows.data, cnt, out);
	else if (is_pinned)
		put_pinned_legend(r, out);
	else
		report_put_wrapped(rows.cnt ? "temporary: blocks freed within 1 ms, and their "
					      "share of all blocks allocated while recording" :
					      "No sampled block was freed within 1 ms.",
				   2, report_columns(r), out);
out:
	report_names_release(&names);
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
		fprintf(out, " %.1f%% lived under 1 ms,", 100 * s.share);
	fprintf(out, " most have %s\n", most_size_name(&row->bins, size));
}
