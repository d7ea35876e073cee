/* SPDX-License-Identifier: MIT */
/*
 * report_moment.c - which moment of a recording a report shows.
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
#include "profile/moment.h"
#include "report/report.h"
#include "report/report_rows.h"

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
		       "heap in use at other moments is unknown: only profiles of heaptap record "
		       "have it");
}

bool report_is_at_end(const struct report *r)
{
	return r->p->moment.at == PROFILE_AT_END;
}

const struct report_row *report_end_total(const struct report *r)
{
	return report_is_at_end(r) ? &r->total : &r->end;
}

