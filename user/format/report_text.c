/* SPDX-License-Identifier: MIT */
/*
 * report_text.c - the report for people: 100 columns, units on every number.
 *
 * A '!' before a row means that it rests on fewer than four samples: its interval is wide, and
 * whether it is there at all is a matter of luck.
 */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "format/report_rows.h"

#define COLUMNS 100
#define TEXT_BYTES 64

/* "12.3 MiB", or "123 <unit>" for a foreign profile that does not count bytes. */
static const char *amount(const struct report_table *t, double n, char *buf)
{
	char count[UNITS_BUF];

	if (!strcmp(t->unit, "bytes"))
		return format_bytes(n, buf, TEXT_BYTES);
	snprintf(buf, TEXT_BYTES, "%s %s", format_count(n, count, sizeof(count)), t->unit);
	return buf;
}

/*
 * "12.3 MiB +- 1.2 MiB" where the interval is about symmetric, "12.3 MiB (4.1 .. 30.2 MiB)" style
 * needs more room than a table has: the wider side is shown.
 */
static const char *with_error(const struct report_table *t, const struct estimate *e, char *buf,
			      size_t buf_bytes)
{
	char value[TEXT_BYTES], error[TEXT_BYTES];
	double low, high;

	amount(t, e->bytes, value);
	if (!t->has_error || t->is_exact || e->bytes_variance <= 0) {
		snprintf(buf, buf_bytes, "%s", value);
		return buf;
	}
	estimate_interval(e, &low, &high);
	snprintf(buf, buf_bytes, "%s +- %s", value,
		 amount(t, fmax(high - e->bytes, e->bytes - low), error));
	return buf;
}

static double share(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static void print_title(const struct profile *p, const struct report_table *t, FILE *out)
{
	char buf[2 * TEXT_BYTES], count[UNITS_BUF], when[TEXT_BYTES] = "", rate[UNITS_BUF];
	time_t seconds = p->time_ns / 1000000000;
	struct tm tm;

	if (p->time_ns && gmtime_r(&seconds, &tm))
		strftime(when, sizeof(when), " at %Y-%m-%d %H:%M:%S UTC", &tm);
	fprintf(out, "In use%s: %s in %s objects", when,
		with_error(t, &t->total, buf, sizeof(buf)),
		format_count(t->total.objects, count, sizeof(count)));
	if (t->value_alloc >= 0)
		fprintf(out, "; allocated: %s", amount(t, t->alloc_bytes, buf));
	fputc('\n', out);
	if (t->is_exact)
		fputs("Every allocation was recorded: the numbers are exact.\n", out);
	else if (t->has_error)
		fprintf(out,
			"One sample per %s allocated; +- is the 95 %% interval; '!' marks rows of "
			"fewer than 4 samples.\n",
			format_bytes(p->period, rate, sizeof(rate)));
	fputc('\n', out);
}

/* Values of a row, in columns. */
static void print_values(const struct report_table *t, const struct report_row *r, FILE *out)
{
	char inuse[2 * TEXT_BYTES], alloc[TEXT_BYTES], count[UNITS_BUF];

	fprintf(out, "%c%26s %8s %5.1f %%",
		!t->is_exact && t->has_error && estimate_is_weak(&r->inuse) ? '!' : ' ',
		with_error(t, &r->inuse, inuse, sizeof(inuse)),
		format_count(r->inuse.objects, count, sizeof(count)),
		share(r->inuse.bytes, t->total.bytes));
	if (t->value_alloc >= 0)
		fprintf(out, " %11s", amount(t, r->alloc_bytes, alloc));
}

/* file.c:12, or the module for a location without lines. */
static void print_place(const struct profile *p, uint32_t loc, uint32_t line, FILE *out)
{
	const struct profile_location *l = &p->locations.data[loc];
	const struct profile_line *ln = l->line_cnt ? &p->lines.data[line] : NULL;
	const char *file = ln ? profile_text(p, p->functions.data[ln->function].filename_str) : "";

	if (file[0]) {
		const char *slash = strrchr(file, '/');

		fprintf(out, "  %s", slash ? slash + 1 : file);
		if (ln->line)
			fprintf(out, ":%lld", (long long)ln->line);
	} else if (report_location_module(p, loc)[0]) {
		fprintf(out, "  (%s)", report_location_module(p, loc));
	}
}

static void print_frame(const struct profile *p, uint32_t loc, uint32_t line, FILE *out)
{
	const struct profile_location *l = &p->locations.data[loc];
	char buf[512];
	const char *name = report_location_name(p, loc, buf, sizeof(buf));

	if (l->line_cnt)
		name = profile_text(p, p->functions.data[p->lines.data[line].function].name_str);
	/* Template names can be of any length; a row is a row. */
	fprintf(out, "        %.*s%s", COLUMNS - 30, name,
		strlen(name) > COLUMNS - 30 ? "..." : "");
	print_place(p, loc, line, out);
	fputc('\n', out);
}

static size_t frame_cnt_of(const struct profile *p, const struct profile_sample *s)
{
	size_t cnt = 0;

	for (uint32_t i = 0; i < s->loc_cnt; i++) {
		uint32_t lines = p->locations.data[p->sample_locs.data[s->loc_first + i]].line_cnt;

		cnt += lines ? lines : 1;
	}
	return cnt;
}

static void print_stack(const struct profile *p, const struct profile_sample *s, size_t frame_cap,
			FILE *out)
{
	size_t total = frame_cnt_of(p, s), shown = 0;

	for (uint32_t i = 0; i < s->loc_cnt; i++) {
		uint32_t loc = p->sample_locs.data[s->loc_first + i];
		const struct profile_location *l = &p->locations.data[loc];

		for (uint32_t k = 0; k < (l->line_cnt ? l->line_cnt : 1); k++) {
			/* One line is not worth hiding behind a line that says so. */
			if (frame_cap && shown == frame_cap && total > frame_cap + 1) {
				fprintf(out, "        ... %zu more\n", total - shown);
				return;
			}
			print_frame(p, loc, l->line_first + k, out);
			shown++;
		}
	}
}

static void print_head(const struct report_table *t, const char *last, FILE *out)
{
	fprintf(out, " %26s %8s %7s", "in use", "objects", "share");
	if (t->value_alloc >= 0)
		fprintf(out, " %11s", "allocated");
	fprintf(out, "  %s\n", last);
}

static void print_stacks(const struct profile *p, const struct report_options *opts,
			 const struct report_table *t, FILE *out)
{
	const struct report_row *r;
	const char *thread;

	print_head(t, "thread", out);
	vec_each(&t->rows, r) {
		print_values(t, r, out);
		if (r->is_other) {
			fprintf(out, "  (%zu other stacks)\n", r->other_cnt);
			continue;
		}
		thread = profile_sample_label(p, r->sample, "thread");
		if (r->thread_cnt > 1)
			fprintf(out, "  (%zu threads)\n", r->thread_cnt);
		else
			fprintf(out, "  %s\n", thread ? thread : "");
		print_stack(p, r->sample, opts->frame_cap, out);
		fputc('\n', out);
	}
}

static void print_named(const struct report_options *opts, const struct report_table *t, FILE *out)
{
	static const char *const what[] = { "stack", "function", "module", "thread" };
	const struct report_row *r;
	char cumulative[TEXT_BYTES];
	bool has_cumulative = opts->by == REPORT_BY_FUNCTION;

	print_head(t, has_cumulative ? "cumulative  function" : what[opts->by], out);
	vec_each(&t->rows, r) {
		print_values(t, r, out);
		if (has_cumulative && !r->is_other)
			fprintf(out, "  %10s", amount(t, r->cumulative_bytes, cumulative));
		else if (has_cumulative)
			fprintf(out, "  %10s", "");
		if (r->is_other)
			fprintf(out, "  (%zu others)\n", r->other_cnt);
		else
			fprintf(out, "  %s\n", r->name);
	}
}

/* "ledger: name 0 (...)": nothing was lost or counted there. */
static bool is_zero_ledger(const char *comment)
{
	char name[64];
	unsigned long long n;

	return sscanf(comment, "ledger: %63s %llu", name, &n) == 2 && n == 0;
}

static void print_notes(const struct profile *p, FILE *out)
{
	bool is_first = true;

	for (size_t i = 0; i < p->comments.cnt; i++) {
		const char *text = profile_text(p, p->comments.data[i]);

		if (is_zero_ledger(text))
			continue;
		if (is_first)
			fputs("\nNotes:\n", out);
		is_first = false;
		fprintf(out, "  %s\n", text);
	}
}

int report_text(const struct profile *p, const struct report_options *opts,
		const struct report_table *t, FILE *out)
{
	print_title(p, t, out);
	if (!t->rows.cnt)
		fputs("The profile has no samples.\n", out);
	else if (opts->by == REPORT_BY_STACK)
		print_stacks(p, opts, t, out);
	else
		print_named(opts, t, out);
	print_notes(p, out);
	return 0;
}
