/* SPDX-License-Identifier: MIT */
/*
 * report_moment.c - which moment of a recording a report shows, and what it says of the peak.
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

#include "base/err.h"
#include "base/units.h"
#include "profile/moment.h"
#include "report/report.h"
#include "report/report_losses.h"
#include "report/report_rows.h"
#include "report/report_text.h"

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

bool report_is_at_end(const struct report *r)
{
	return r->p->moment.at == PROFILE_AT_END;
}

const struct report_row *report_end_total(const struct report *r)
{
	return report_is_at_end(r) ? &r->total : &r->end;
}

static struct report_row row_of(const struct estimate *e)
{
	return (struct report_row){ .value = profile_value(e->bytes),
				    .objects = profile_value(e->objects),
				    .estimate = *e };
}

void report_set_moments(struct report *r)
{
	struct estimate peak;

	if (!report_is_at_end(r))
		r->end = row_of(&r->p->moment.end);
	if (profile_peak(r->p, &peak))
		r->at_peak = row_of(&peak);
}

/* The function that held most at the peak, and its bytes. 0: there is no memory to find it. */
static double find_top(const struct report *r, char name[REPORT_NAME_BUF])
{
	int type = profile_find_type(r->p, "peak_space");
	struct strset *names = NULL;
	VEC(double) sums = { 0 };
	const struct profile_sample *s;
	int64_t top = -1;
	double most = 0;

	if (type < 0 || strset_new(&names))
		return 0;
	vec_each(&r->p->samples, s) {
		char buf[REPORT_NAME_BUF];
		int64_t id = strset_add(names, report_sample_function(r, s, buf));

		while (id >= 0 && sums.cnt <= (size_t)id && !vec_push(&sums, 0.0))
			;
		if (id < 0 || sums.cnt <= (size_t)id)
			break;
		sums.data[id] += (double)r->p->values.data[s->value_first + (size_t)type];
		if (top < 0 || sums.data[id] > sums.data[top])
			top = id;
	}
	if (top >= 0) {
		most = sums.data[top];
		snprintf(name, REPORT_NAME_BUF, "%s", strset_get(names, top));
	}
	vec_release(&sums);
	strset_free(names);
	return most;
}

/* Is something of it not known? Where frees were unknown for a time, so are the blocks of that time, and those from before it
 * that were in use then. Of other moments not every stack may be kept. */
static bool is_least(const struct report *r)
{
	return report_is_least(r) || report_lacks_processes(r->p, true) ||
	       r->p->recording.inuse == RECORDING_INUSE_SINCE ||
	       (r->p->moment.at == PROFILE_AT_TIME && r->p->is_history_partial);
}

static void add_total(const struct report *r, const char *title, const struct report_row *row,
		      struct report_line *l)
{
	char value[UNITS_BUF], interval[REPORT_INTERVAL_BUF], count[UNITS_BUF];
	bool is_exact;

	report_line_add(l, "", "%s: %s%s", title, is_least(r) ? "at least " : "",
			report_format_value(r, report_value(row), value));
	report_format_unit_interval(r, row, interval);
	is_exact = !strcmp(interval, "exact");
	if (interval[0] && !(is_exact && is_least(r)))
		report_line_add(l, " ", is_exact ? "(%s)" : "%s (95 %%)", interval);
	if (r->p->moment.at != PROFILE_AT_TIME)
		report_line_add(l, " ", "in %s block%s",
				format_count((double)row->objects, count, sizeof(count)),
				row->objects == 1 ? "" : "s");
}

/* "Peak: 56.7 MiB +-0.4 (95 %) in 1.20k blocks at 0.41 s, 45 % of it by f": the rows are of the end. */
static void put_peak(const struct report *r, FILE *out)
{
	struct report_line l = { .out = out, .columns = report_columns(r), .indent = 2 };
	char when[UNITS_BUF], name[REPORT_NAME_BUF], fit[REPORT_FIT_BUF];
	double most = find_top(r, name);

	add_total(r, "Peak", &r->at_peak, &l);
	report_line_add(&l, " ", "at %s",
			format_duration((uint64_t)r->p->recording.peak_ns, when, sizeof(when)));
	if (most > 0)
		report_line_add(&l, ", ", "%.0f %% of it by %s",
				100 * most / (double)r->at_peak.value,
				report_fit_name(name, 48, fit));
	report_line_end(&l);
}

/* The rows are of this moment. */
static void put_moment(const struct report *r, FILE *out)
{
	struct report_line l = { .out = out, .columns = report_columns(r), .indent = 2 };
	bool is_peak = r->p->moment.at == PROFILE_AT_PEAK;
	char when[UNITS_BUF], asked[UNITS_BUF], title[2 * UNITS_BUF + 16];

	format_duration((uint64_t)r->p->moment.ns, when, sizeof(when));
	format_duration(r->opts->at_ns, asked, sizeof(asked));
	if (is_peak)
		snprintf(title, sizeof(title), "Peak");
	else if (!strcmp(when, asked))
		snprintf(title, sizeof(title), "At %s", when);
	else
		snprintf(title, sizeof(title), "At %s (nearest to %s)", when, asked);
	add_total(r, title, &r->total, &l);
	if (is_peak)
		report_line_add(&l, " ", "at %s", when);
	report_line_add(&l, "; ", "the rows are of this moment (--at end: at the end)");
	report_line_end(&l);
}

void report_put_moment(const struct report *r, FILE *out)
{
	if (!r->is_inuse || r->is_unknown || r->opts->older_than)
		return;
	if (!report_is_at_end(r))
		put_moment(r, out);
	else if (!r->opts->scope && r->at_peak.value)
		put_peak(r, out);
}
