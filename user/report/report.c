/* SPDX-License-Identifier: MIT */
/* report.c - see report.h. */
#include "report/report.h"

#include "base/err.h"
#include "base/vec.h"
#include "profile/moment.h"
#include "profile/scope_tree.h"
#include "report/report_rows.h"
#include "report/report_text.h"

/*
 * Lines "root;caller;leaf value", the format of flame graph programs.
 *
 * By thread, module or label, the stack begins with a frame of that name; by scope, with one frame
 * for each name of its path; by instance, with one more for the task. The format has no escapes: a
 * semicolon in a name becomes ':', a line break a space. Values of 0 and below have no width in a
 * flame graph and are left out.
 */

static void put_text(const char *s, size_t len, FILE *out)
{
	for (const char *end = s + len; s < end; s++)
		fputc(*s == ';' ? ':' : iscntrl((unsigned char)*s) ? ' ' : *s, out);
}

static void put_name(const char *name, FILE *out)
{
	put_text(name, strlen(name), out);
}

static void put_path(const char *path, FILE *out)
{
	struct scope_name name;
	bool is_first = true;

	while (scope_path_next(&path, &name)) {
		if (!is_first)
			fputc(';', out);
		is_first = false;
		put_text(name.text, name.len, out);
	}
}

static void put_task(const struct report *r, const struct profile_sample *s, FILE *out)
{
	const struct profile_label *l = profile_find_label(r->p, s, "task");

	if (l && !l->str)
		fprintf(out, ";task %" PRIu64, (uint64_t)l->num);
}

/* Write the frames at the stack's bottom; false: none. */
static bool put_base(const struct report *r, const struct profile_sample *s, FILE *out)
{
	char buf[REPORT_NAME_BUF];

	switch (r->opts->by) {
	case REPORT_BY_THREAD:
		put_name(report_sample_thread(r, s, buf), out);
		return true;
	case REPORT_BY_PROCESS:
		put_name(report_sample_process(r, s, buf), out);
		return true;
	case REPORT_BY_MODULE:
		put_name(report_sample_module(r, s), out);
		return true;
	case REPORT_BY_LABEL:
		put_name(report_sample_label(r, s, buf), out);
		return true;
	case REPORT_BY_SCOPE:
	case REPORT_BY_INSTANCE:
		put_path(report_sample_scope(r, s), out);
		if (r->opts->by == REPORT_BY_INSTANCE)
			put_task(r, s, out);
		return true;
	default:
		return false;
	}
}

/* The frames of a location, root first: its lines from the last to the first. */
static void put_location(const struct profile *p, uint32_t index, bool is_first, FILE *out)
{
	struct report_frame f = { .location = &p->locations.data[index] };
	uint32_t cnt = f.location->line_cnt;
	char buf[REPORT_NAME_BUF];

	for (uint32_t i = cnt ? cnt : 1; i-- > 0;) {
		f.line = cnt ? &p->lines.data[f.location->line_first + i] : NULL;
		if (!is_first)
			fputc(';', out);
		is_first = false;
		put_name(report_frame_name(p, &f, buf, sizeof(buf)), out);
	}
}

static void put_stack(const struct report *r, const struct profile_sample *s, int64_t value,
		      FILE *out)
{
	bool has_base = put_base(r, s, out);

	for (uint32_t i = s->loc_cnt; i-- > 0;)
		put_location(r->p, r->p->sample_locs.data[s->loc_first + i],
			     !has_base && i + 1 == s->loc_cnt, out);
	if (!has_base && !s->loc_cnt)
		fputs("(no stack)", out);
	fprintf(out, " %" PRId64 "\n", value);
}

static void put_row(const struct report *r, const struct report_row *row, FILE *out)
{
	if (row->value <= 0)
		return;
	if (row->sample_cnt) {
		put_stack(r, &r->p->samples.data[r->order.data[row->sample_first]], row->value,
			  out);
		return;
	}
	put_name(strset_get(r->names, row->name), out);
	fprintf(out, " %" PRId64 "\n", row->value);
}

static int report_write_collapsed(const struct report *r, FILE *out)
{
	const struct report_row *row;
	const uint32_t *i;

	if (r->opts->by == REPORT_BY_STACK) {
		vec_each(&r->rows, row)
			put_row(r, row, out);
		return 0;
	}
	vec_each(&r->chosen, i) {
		const struct profile_sample *s = &r->p->samples.data[*i];
		int64_t value = report_sample_value(r, s, r->value_type);

		if (value > 0)
			put_stack(r, s, value, out);
	}
	if (r->has_unmatched)
		put_row(r, &r->unmatched, out);
	return 0;
}

/* Write a table by growth, temporary blocks or pinned memory. */
static int write_ranked(const struct profile *p, const struct report_options *opts, FILE *out)
{
	struct report_options all = *opts;
	struct report *r;
	int err;

	all.row_cap = 0; /* rows are folded after comparing */
	all.lines = 0;
	err = report_open(p, &all, &r);
	if (err)
		return err;
	err = report_write_ranked(r, opts->row_cap, out);
	report_close(r);
	return err;
}

static int write_once(const struct profile *p, const struct report_options *opts, FILE *out)
{
	struct report *r;
	int err = report_open(p, opts, &r);

	if (err)
		return err;
	switch (opts->format) {
	case REPORT_TEXT:
		err = report_write_text(r, out);
		break;
	case REPORT_JSON:
		err = report_write_json(r, out);
		break;
	case REPORT_COLLAPSED:
		err = r->is_unknown && r->is_inuse ? -ENODATA : report_write_collapsed(r, out);
		break;
	case REPORT_HEAP:
	case REPORT_HEAP_V2:
		err = report_write_heap(r, out);
		break;
	case REPORT_HTML:
		err = report_write_html(r, out);
		break;
	}
	report_close(r);
	return err;
}

/* The number of rows that a cap gives a tree is known only once it is made: reduce the cap until it fits. */
static int write_fitting(const struct profile *p, const struct report_options *opts, FILE *out)
{
	struct report_options o = *opts;
	bool fits = false;
	int err = 0;

	if (!o.row_cap || o.row_cap > o.lines)
		o.row_cap = o.lines;
	while (!err && !fits) {
		char *text = NULL;
		size_t bytes, cnt;
		FILE *f = open_memstream(&text, &bytes);

		if (!f)
			return -ENOMEM;
		err = write_once(p, &o, f);
		if (fclose(f) && !err)
			err = -ENOMEM;
		cnt = err ? 0 : report_count_lines(text);
		fits = cnt <= o.lines || o.row_cap == 1;
		if (!err && fits)
			fputs(text, out);
		o.row_cap -= o.row_cap > 1;
		free(text);
	}
	return err;
}

/*
 * Which moment of a recording a report shows.
 *
 * What is in use at the end is what people look for in a process that runs: it is what the process holds now. When a
 * command has ended, it says little: a program that ends well has freed nearly all, and one that does not care leaves
 * what happened to be there (ffmpeg: 143 KiB of a peak of 57 MiB). So of a command that heaptap started and that has
 * ended, a report shows the peak; of all else, the end. Nothing is compared: a rule that depended on how much is left
 * would show one run's peak and the next run's end. The report says which moment it is, and names the other.
 *
 * That is for people: text and pictures. JSON, collapsed stacks and heap dumps are of the end unless --at is given,
 * because what they mean must not depend on how a recording was begun. What exists only at the end is of the end:
 * tasks, ages, growth. --at says it plainly for all of them.
 */

static bool has_only_end(const struct report_options *o)
{
	return o->by == REPORT_BY_INSTANCE || report_is_by_class(o) ||
	       o->value == REPORT_VALUE_ALLOC || o->sort >= REPORT_SORT_GROWTH || o->older_than;
}

static enum report_at default_moment(const struct profile *p, const struct report_options *o)
{
	bool is_for_people = o->format == REPORT_TEXT || o->format == REPORT_HTML;
	bool is_ended_command =
		p->recording.is_known && p->recording.has_ended && p->recording.program[0];
	struct estimate peak;

	return is_for_people && is_ended_command && !has_only_end(o) && profile_peak(p, &peak) ?
		       REPORT_AT_PEAK :
		       REPORT_AT_END;
}

int report_move(struct profile *p, const struct report_options *o, struct err *why)
{
	enum report_at at = o->at != REPORT_AT_DEFAULT ? o->at : default_moment(p, o);

	if (at == REPORT_AT_END)
		return 0;
	if (p->recording.is_known && p->recording.inuse == RECORDING_INUSE_UNKNOWN)
		return err_set(why, -ENODATA,
			       "heap in use at that moment is unknown, because frees were not "
			       "tracked: see heaptap report");
	if (at == REPORT_AT_PEAK)
		return err_set(why, profile_move_to_peak(p),
			       "its peak is unknown: only profiles of heaptap record have it");
	return err_set(why, profile_move_to_time(p, (int64_t)o->at_ns),
		       "heap in use at other moments is unknown: only profiles of heaptap "
		       "record, and of one process of heaptap serve, have it");
}

bool report_has_scopes(const struct profile *p)
{
	const struct profile_sample *s;

	vec_each(&p->samples, s)
		if (profile_sample_label(p, s, "scope"))
			return true;
	return false;
}

int report_write(const struct profile *p, const struct report_options *opts, FILE *out)
{
	struct report_options o = *opts;
	bool is_tree;
	int err;

	if (o.format == REPORT_TEXT && o.by_is_default && !o.shows_stacks && report_has_scopes(p))
		o.by = REPORT_BY_SCOPE;
	if (o.format == REPORT_TEXT && o.sort >= REPORT_SORT_GROWTH) {
		err = write_ranked(p, &o, out);
		goto out;
	}
	is_tree = o.by == REPORT_BY_SCOPE || o.by == REPORT_BY_INSTANCE;
	err = o.format == REPORT_TEXT && o.lines && is_tree && !o.shows_notes ?
		      write_fitting(p, &o, out) :
		      write_once(p, &o, out);
out:
	if (!err && (fflush(out) || ferror(out)))
		err = errno ? -errno : -EIO;
	return err;
}
