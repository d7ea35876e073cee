/* SPDX-License-Identifier: MIT */
/*
 * report_text.c - a report for people: the head, the rows, and what follows them. It fits in
 * opts->columns and, if asked for, opts->lines; names are shortened to fit, numbers never. The rows
 * with whole stacks are here; those that fit a screen are in report_screen.c.
 *
 * The error bar is "+-1.2 MiB" if symmetric, "-0.9 MiB +1.4 MiB" if lopsided because of few
 * samples, "exact" if there is none. Rows with fewer than four samples are marked "?".
 */
#include "report/report_text.h"

#include "base/printable.h"
#include "profile/witness.h"
#include "report/report_losses.h"
#include "report/report_rows.h"

/*
 * What follows the rows of a report for people: the meaning of marks, the losses,
 * where the profile is and what to ask next, and its notes if wanted; and whether memory matters that cannot be in it.
 *
 * That a runtime has a heap of its own says nothing of how much is in it: nearly all that a program in Python holds may
 * be malloc's. The resident set tells. It keeps blocks that were freed, so it is compared with the most that was in use
 * at any moment.
 */

#define GROWTH_BYTES_MIN (256 << 10)
#define GROWTH_SHARE_MIN 0.01
#define SEEN_SHARE 0.5
/* Code and data of files are resident, too, and come in late. */
#define LEAST_GROWTH_BYTES_MIN (4 << 20)

static void put_losses(const struct report *r, FILE *out)
{
	char more[64] = "; see --notes", words[REPORT_FIT_BUF], text[REPORT_FIT_BUF];
	struct report_loss worst;
	size_t cnt = report_find_losses(r->p, &worst), columns = report_columns(r);

	if (!cnt)
		return;
	if (cnt > 1)
		snprintf(more, sizeof(more), "; %zu more with --notes", cnt - 1);
	snprintf(words, sizeof(words), "%llu %.*s", worst.cnt, (int)strlen(worst.meaning) - 1,
		 worst.meaning);
	report_fit_name(words, columns - 6 - strlen(more), text);
	fprintf(out, "lost: %s%s\n", text, more);
}

static void report_put_legend(const struct report *r, const struct report_marks *marks, FILE *out)
{
	if (marks->has_weak)
		report_put_wrapped("? fewer than 4 samples: order of magnitude only", 2,
				   report_columns(r), out);
	if (marks->has_minimum)
		report_put_wrapped("> the row sums up several peaks: at least this much", 2,
				   report_columns(r), out);
}

static bool has_label(const struct profile *p, const char *key)
{
	const struct profile_sample *s;

	vec_each(&p->samples, s)
		if (profile_sample_label(p, s, key))
			return true;
	return false;
}

static const char *next_option(const struct report *r)
{
	if (r->opts->by == REPORT_BY_SCOPE)
		return "--by stack";
	if (r->opts->by != REPORT_BY_STACK)
		return "--by stack -v";
	if (r->opts->shows_stacks)
		return "--by function";
	return has_label(r->p, "scope")	 ? "--by scope" :
	       has_label(r->p, "thread") ? "--by thread" :
					   "--by function";
}

/* Quote a path for a shell, so that it is not taken for an option; "": out of memory. */
static void format_path(const char *path, char buf[REPORT_FIT_BUF])
{
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);

	buf[0] = '\0';
	if (!f)
		return;
	if (path[0] == '-')
		fputs("./", f);
	shell_word_put(path, f);
	if (!fclose(f))
		report_fit_name(text, REPORT_FIT_BUF / 2, buf);
	free(text);
}

/* A name longer than the page stays whole, so that it can be copied. */
static void put_file(const struct report *r, FILE *out)
{
	struct report_line l = { .out = out, .columns = report_columns(r), .indent = 2 };
	char path[REPORT_FIT_BUF];
	const struct recording *rec = &r->p->recording;

	if (!r->opts->path)
		return;
	format_path(r->opts->path, path);
	if (!path[0])
		return;
	if (r->opts->is_new)
		report_line_add(&l, "", "saved %s", path);
	report_line_add(&l, "; ", "%sheaptap report %s %s", r->opts->is_new ? "" : "next: ", path,
			next_option(r));
	if (r->opts->is_new && rec->is_known && !rec->is_lossy && !report_has_losses(r->p) &&
	    !report_is_least(r))
		report_line_add(&l, "; ", "no losses");
	report_line_end(&l);
}

static void report_put_end(const struct report *r, FILE *out)
{
	put_losses(r, out);
	put_file(r, out);
}

/* "ledger: name 0 (meaning)": a loss that did not happen. */
static bool is_empty_ledger_line(const char *text)
{
	char name[64];
	unsigned long long value;

	return sscanf(text, REPORT_LEDGER "%63s %llu", name, &value) == 2 && !value;
}

/* Write the profile's comments. */
static void report_put_notes(const struct report *r, FILE *out)
{
	bool is_first = true;
	const int64_t *id;

	vec_each(&r->p->comments, id) {
		const char *text = profile_text(r->p, *id);

		if (is_empty_ledger_line(text))
			continue;
		if (is_first)
			fputs("\nNotes\n", out);
		is_first = false;
		fputs("  ", out);
		report_put_wrapped(text, 4, report_columns(r) - 2, out);
	}
	if (is_first)
		fputs("\nThe profile has no notes.\n", out);
}

const char *report_next_unseen(const struct profile *p, size_t *at)
{
	static const char prefix[] = "not seen: ";

	while (*at < p->comments.cnt) {
		const char *text = profile_text(p, p->comments.data[(*at)++]);

		if (!strncmp(text, prefix, sizeof(prefix) - 1))
			return text + sizeof(prefix) - 1;
	}
	return NULL;
}

bool report_is_mostly_unseen(const struct report *r)
{
	const struct recording *rec = &r->p->recording;
	double growth = witness_growth(r->p);

	return rec->is_known && r->is_inuse && rec->rss_end_bytes &&
	       (rec->rss_begin_bytes || rec->is_from_start) && growth >= GROWTH_BYTES_MIN &&
	       growth >= GROWTH_SHARE_MIN * (double)rec->rss_begin_bytes &&
	       (double)report_end_total(r)->value < SEEN_SHARE * growth;
}

/* The most that was in use at a moment; without moments, what is now. */
static double most_bytes(const struct report *r)
{
	double now = (double)r->whole.value, most = witness_most(r->p, NULL);

	return most > now ? most : now;
}

bool report_is_least(const struct report *r)
{
	const struct recording *rec = &r->p->recording;
	double growth = witness_growth(r->p);
	size_t at = 0;

	if (!r->is_inuse || r->is_unknown || !rec->is_known)
		return false;
	/* Of processes that run on, what is in use now is not in those that have ended. */
	if (report_lacks_processes(r->p, rec->is_from_start || !report_is_at_end(r)))
		return true;
	if (report_lacks_blocks(r->p))
		return true;
	if (!report_next_unseen(r->p, &at))
		return false;
	if (r->is_lossy)
		return true;
	return rec->rss_begin_bytes && growth >= LEAST_GROWTH_BYTES_MIN &&
	       most_bytes(r) < SEEN_SHARE * growth;
}

#define NAME_COLUMNS_MIN 20

/* "file.c:12" or the module. */
static void format_place(const struct report *r, const struct report_frame *f, char *buf,
			 size_t buf_bytes)
{
	const char *file = "", *slash;

	if (f->line)
		file = profile_text(r->p, r->p->functions.data[f->line->function].filename_str);
	slash = strrchr(file, '/');
	if (slash)
		file = slash + 1;
	if (f->line && file[0] && f->line->line > 0)
		snprintf(buf, buf_bytes, "%.60s:%" PRId64, file, f->line->line);
	else
		snprintf(buf, buf_bytes, "%.60s", file[0] ? file : report_frame_module(r->p, f));
}

static void put_frame(const struct report *r, const struct report_frame *f, FILE *out)
{
	char name[REPORT_NAME_BUF], place[96];
	size_t room = report_columns(r) > 60 ? report_columns(r) - 8 : 52, used;
	const char *text = report_frame_name(r->p, f, name, sizeof(name));

	format_place(r, f, place, sizeof(place));
	fputs("        ", out);
	used = report_width(place) + 2;
	report_put_name(out, text, room > used + NAME_COLUMNS_MIN ? room - used : NAME_COLUMNS_MIN);
	if (place[0]) {
		fputs("  ", out);
		report_put_name(out, place, room);
	}
	fputc('\n', out);
}

static size_t count_frames(const struct profile *p, const struct profile_sample *s)
{
	struct report_frame_pos pos = { 0 };
	struct report_frame f;
	size_t n = 0;

	while (report_next_frame(p, s, &pos, &f))
		n++;
	return n;
}

static void put_frames(const struct report *r, const struct profile_sample *s, FILE *out)
{
	size_t cnt = count_frames(r->p, s), cap = r->opts->frame_cap, shown = 0;
	struct report_frame_pos pos = { 0 };
	struct report_frame f;

	if (!cnt)
		fputs("        (no stack)\n", out);
	if (!cap || cnt <= cap + 1) /* "... 1 more" would be as long as the frame */
		cap = cnt;
	for (; shown < cap && report_next_frame(r->p, s, &pos, &f); shown++)
		put_frame(r, &f, out);
	if (cnt > cap)
		fprintf(out, "        ... %zu more\n", cnt - cap);
}

/* Write the values of a label in a row's samples: "worker" or "worker and others". */
static void put_label(const struct report *r, const struct report_row *row, const char *key,
		      const char *before, size_t columns, FILE *out)
{
	const char *first = NULL;
	bool has_others = false;

	for (uint32_t i = 0; i < row->sample_cnt; i++) {
		const struct profile_sample *s =
			&r->p->samples.data[r->order.data[row->sample_first + i]];
		const char *value = profile_sample_label(r->p, s, key);

		if (!first)
			first = value;
		else if (value && strcmp(value, first) != 0)
			has_others = true;
	}
	if (!first)
		return;
	fputs(before, out);
	report_put_name(out, first, columns);
	if (has_others)
		fputs(" and others", out);
}

static void put_stack(const struct report *r, size_t i, FILE *out)
{
	const struct report_row *row = &r->rows.data[i];
	char value[UNITS_BUF], interval[REPORT_INTERVAL_BUF], text[UNITS_BUF];

	if (row->row_cnt)
		fprintf(out, "(other: %zu stack%s)  ", row->row_cnt, row->row_cnt == 1 ? "" : "s");
	else if (!row->sample_cnt)
		fprintf(out, "%s  ", strset_get(r->names, row->name));
	else
		fprintf(out, "#%zu  ", i + 1);
	fputs(report_format_value(r, report_value(row), value), out);
	report_format_interval(r, row, interval);
	if (interval[0])
		fprintf(out, strcmp(interval, "exact") != 0 ? " %s" : " (%s)", interval);
	if (report_is_weak(r, row))
		fputs(" ?", out);
	fprintf(out, "  %s", report_format_share(r, row->value, text));
	if (r->objects_type >= 0)
		fprintf(out, ", %s block%s", format_count(row->objects, text, sizeof(text)),
			row->objects == 1 ? "" : "s");
	if (r->alloc_type >= 0)
		fprintf(out, ", allocated %s", format_bytes(report_alloc(row), text, sizeof(text)));
	put_label(r, row, "thread", ", thread ", 16, out);
	put_label(r, row, "scope", "\n        in scope ", report_columns(r) - 30, out);
	fputc('\n', out);
	report_put_blocks(r, row, out);
	if (row->sample_cnt)
		put_frames(r, &r->p->samples.data[r->order.data[row->sample_first]], out);
	fputc('\n', out);
}

static void put_stacks(const struct report *r, struct report_marks *marks, FILE *out)
{
	for (size_t i = 0; i < r->rows.cnt; i++) {
		marks->has_weak |= report_is_weak(r, &r->rows.data[i]);
		put_stack(r, i, out);
	}
}

static void put_nothing(const struct report *r, FILE *out)
{
	report_put_wrapped(
		r->opts->older_than ?
			"No sampled block has been in use for that long." :
		r->rate_bytes > 1 ?
			"Nothing was sampled. With --rate 1 every allocation is recorded." :
			"Nothing was sampled.",
		2, report_columns(r), out);
}

/* line_cap: maximum lines of the rows. */
static int put_rows(const struct report *r, size_t line_cap, FILE *out)
{
	struct report_marks marks = { 0 };
	int err = 0;

	if (!r->rows.cnt)
		put_nothing(r, out);
	else if (report_is_screen(r->opts))
		err = report_put_screen_rows(r, line_cap, &marks, out);
	else if (r->opts->by == REPORT_BY_STACK)
		put_stacks(r, &marks, out);
	else
		report_put_tree(r, &marks, out);
	report_put_legend(r, &marks, out);
	return err;
}

size_t report_count_lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static bool has_weak_row(const struct report *r)
{
	const struct report_row *row;

	vec_each(&r->rows, row)
		if (report_is_weak(r, row))
			return true;
	return false;
}

int report_write_text(const struct report *r, FILE *out)
{
	size_t bytes, taken, cap = r->opts->lines;
	char *head = NULL;
	FILE *f = open_memstream(&head, &bytes);
	long end;
	int err;

	if (!f)
		return -ENOMEM;
	report_put_head(r, f);
	end = ftell(f);
	report_put_end(r, f);
	if (end < 0 || fclose(f)) {
		free(head);
		return -ENOMEM;
	}
	taken = report_count_lines(head) + has_weak_row(r);
	fwrite(head, 1, (size_t)end, out);
	if (r->opts->by == REPORT_BY_STACK && r->opts->shows_stacks)
		fputc('\n', out);
	err = put_rows(r, cap ? (cap > taken + 3 ? cap - taken : 3) : 0, out);
	fputs(head + end, out);
	free(head);
	if (!err && r->opts->shows_notes)
		report_put_notes(r, out);
	return err;
}
