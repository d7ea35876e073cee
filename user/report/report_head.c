/* SPDX-License-Identifier: MIT */
/*
 * report_head.c - what precedes the rows of a report for people: the process, the duration and the
 * cost; what is held, and how fast it grows; what was allocated; and how much of the growth of
 * resident memory that explains. Unknown values are called unknown, or left out, but are never 0.
 */

#include "base/units.h"
#include "profile/resident_words.h"
#include "profile/witness.h"
#include "report/report_rows.h"
#include "report/report_text.h"

#define NS_PER_MINUTE 60e9
/* Growth below both limits means nothing: pages come and go. */
#define GROWTH_BYTES_MIN (256 << 10)
#define GROWTH_SHARE_MIN 0.01
#define EXPLAINED_SHARE 0.9
#define BEFORE_CLASSES_SHOWN 3

/* The rest of the first comment that begins with prefix; NULL: none. */
static const char *find_comment(const struct profile *p, const char *prefix)
{
	const int64_t *id;

	vec_each(&p->comments, id)
		if (!strncmp(profile_text(p, *id), prefix, strlen(prefix)))
			return profile_text(p, *id) + strlen(prefix);
	return NULL;
}

static bool format_date(int64_t ns, const char *format, char *buf, size_t buf_bytes)
{
	time_t when = ns / 1000000000;
	struct tm tm;

	return ns > 0 && gmtime_r(&when, &tm) && strftime(buf, buf_bytes, format, &tm);
}

/* "12:03:05"; with the day if it differs from the profile's. */
static void format_since(const struct report *r, char *buf, size_t buf_bytes)
{
	int64_t ns = r->p->recording.inuse_since_ns, end = r->p->time_ns;
	bool is_same_day = ns / 86400000000000 == end / 86400000000000;

	if (!format_date(ns, is_same_day ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", buf, buf_bytes))
		snprintf(buf, buf_bytes, "later than its begin");
}

static bool is_since(const struct report *r)
{
	return r->p->recording.is_known && r->p->recording.inuse == RECORDING_INUSE_SINCE;
}

static void add_rate(const struct profile *p, struct report_line *l)
{
	const char *type = profile_text(p, p->period_type.type_str);
	const char *unit = profile_text(p, p->period_type.unit_str);
	char rate[UNITS_BUF];

	if (p->period <= 0)
		return;
	if (strcmp(type, "space") != 0 || strcmp(unit, "bytes") != 0)
		report_line_add(l, ", ", "period %" PRId64 " %.20s of %.20s", p->period, unit,
				type);
	else if (p->period == 1)
		report_line_add(l, ", ", "every allocation");
	else
		report_line_add(l, ", ", "one sample per %s",
				report_format_rate((double)p->period, rate));
}

/* "9 %", "0.31 %" */
static const char *format_cost(double share, char *buf)
{
	double percent = 100 * share;

	if (percent > 0 && percent < 0.095)
		snprintf(buf, UNITS_BUF, "less than 0.1 %%");
	else
		snprintf(buf, UNITS_BUF, "%.*f %%", percent < 0.95 && percent > 0 ? 1 : 0, percent);
	return buf;
}

static void add_cost(const struct report *r, struct report_line *l)
{
	const struct recording *rec = &r->p->recording;
	char percent[UNITS_BUF], one_cpu[UNITS_BUF], cost[3 * UNITS_BUF];
	size_t width;

	if (isnan(rec->overhead_share))
		return;
	format_cost(rec->overhead_share, percent);
	/* A large share of little CPU time may be within a limit in parts of one CPU. */
	if (recording_is_of_one_cpu(rec) && !isnan(rec->overhead_one_cpu))
		snprintf(cost, sizeof(cost), "cost %s of its CPU time (%s of one CPU)", percent,
			 format_cost(rec->overhead_one_cpu, one_cpu));
	else
		snprintf(cost, sizeof(cost), "cost %s of its CPU time", percent);
	width = strlen(cost);
	if (l->used + 1 + width <= l->columns) /* at the right edge */
		report_line_add(l, "", "%*s%s", (int)(l->columns - l->used - width), "", cost);
	else
		report_line_add(l, ", ", "%s", cost);
}

static void put_who(const struct report *r, FILE *out)
{
	const struct recording *rec = &r->p->recording;
	struct report_line l = { .out = out, .columns = report_columns(r), .indent = 2 };
	char comm[REPORT_FIT_BUF], text[64];

	report_fit_name(profile_text(r->p, rec->comm_str), 24, comm);
	report_line_add(&l, "", "%s (PID %d)", comm[0] ? comm : "process", rec->pid);
	if (rec->process_cnt > 1)
		report_line_add(&l, " ", "and %u more", rec->process_cnt - 1);
	if (rec->duration_ns > 0)
		report_line_add(&l, ", ", "%s",
				format_duration((uint64_t)rec->duration_ns, text, sizeof(text)));
	if (!r->opts->is_new &&
	    format_date(r->p->time_ns, "%Y-%m-%d %H:%M UTC", text, sizeof(text)))
		report_line_add(&l, " ", "until %s", text);
	add_rate(r->p, &l);
	add_cost(r, &l);
	report_line_end(&l);
}

/* What children allocated is in no row. */
static void put_unrecorded(const struct report *r, FILE *out)
{
	uint32_t cnt = r->p->recording.unrecorded_cnt;

	if (cnt)
		fprintf(out, "%u child process%s not recorded: --follow records children\n", cnt,
			cnt == 1 ? " was" : "es were");
}

/* Head of a profile that does not say how it was recorded. */
static void put_what(const struct report *r, FILE *out)
{
	const char *target = find_comment(r->p, "target: ");
	struct report_line l = { .out = out, .columns = report_columns(r), .indent = 2 };
	char text[64];

	report_line_add(&l, "", "Heap profile");
	if (format_date(r->p->time_ns, "%Y-%m-%d %H:%M:%S UTC", text, sizeof(text)))
		report_line_add(&l, " ", "of %s", text);
	if (r->p->duration_ns > 0)
		report_line_add(&l, ", ", "over %s",
				format_duration((uint64_t)r->p->duration_ns, text, sizeof(text)));
	add_rate(r->p, &l);
	report_line_end(&l);
	if (target) {
		fputs("Target: ", out);
		report_put_name(out, target, report_columns(r) - 8);
		fputc('\n', out);
	}
}

/* Why the profile was saved, and how far it can be trusted. */
static void put_reason(const struct report *r, FILE *out)
{
	const struct recording *rec = &r->p->recording;
	struct report_line l = { .out = out, .columns = report_columns(r), .indent = 2 };
	char reason[REPORT_FIT_BUF], text[REPORT_INTERVAL_BUF];

	if (!rec->is_known || !rec->reason_str)
		return;
	report_fit_name(profile_text(r->p, rec->reason_str), report_columns(r) - 8, reason);
	report_line_add(&l, "", "Saved: %s", reason);
	if (rec->inuse == RECORDING_INUSE_UNKNOWN) {
		report_line_add(&l, "; ", "in use is UNKNOWN");
	} else if (r->is_inuse) {
		report_format_short_interval(r, &r->total, text);
		if (text[0])
			report_line_add(&l, "; ", strcmp(text, "exact") ? "%s (95 %%)" : "%s",
					text);
	}
	if (is_since(r)) {
		format_since(r, text, sizeof(text));
		report_line_add(&l, "; ", "counted since %s", text);
	}
	if (r->is_lossy)
		report_line_add(&l, "; ", "with losses");
	report_line_end(&l);
}

/* The time in which what is held was allocated, 0: not known. */
static int64_t held_ns(const struct report *r)
{
	const struct recording *rec = &r->p->recording;

	if (!rec->is_known)
		return 0;
	if (rec->inuse == RECORDING_INUSE_SINCE)
		return rec->end_ns > rec->inuse_since_ns && rec->inuse_since_ns > 0 ?
			       rec->end_ns - rec->inuse_since_ns :
			       0;
	return rec->duration_ns;
}

static double per_minute(const struct report *r, int64_t value)
{
	int64_t ns = r->is_inuse && !r->opts->older_than ? held_ns(r) : 0;

	return ns > 0 ? (double)value * NS_PER_MINUTE / (double)ns : NAN;
}

/* It is about what is left at the end. */
double report_per_minute(const struct report *r, int64_t value)
{
	return report_is_at_end(r) ? per_minute(r, value) : NAN;
}

static void add_blocks(int64_t objects, bool is_known, struct report_line *l)
{
	char count[UNITS_BUF];

	if (is_known)
		report_line_add(l, " ", "in %s block%s",
				format_count((double)objects, count, sizeof(count)),
				objects == 1 ? "" : "s");
}

/* "+-0.4 (95 %)", "(exact)"; a lower bound is never exact. */
static void add_interval(const struct report *r, const struct report_row *row, bool is_least,
			 struct report_line *l)
{
	char text[REPORT_INTERVAL_BUF];
	bool is_exact;

	report_format_unit_interval(r, row, text);
	is_exact = !strcmp(text, "exact");
	if (text[0] && !(is_exact && is_least))
		report_line_add(l, " ", is_exact ? "(%s)" : "%s (95 %%)", text);
}

static void add_held(const struct report *r, struct report_line *l)
{
	char title[64] = "", text[REPORT_INTERVAL_BUF], value[UNITS_BUF];
	const struct report_row *row = report_end_total(r);
	double growth = per_minute(r, row->value);
	bool is_least = report_is_least(r);

	if (r->is_inuse && r->opts->older_than)
		snprintf(title, sizeof(title), "In use for %.20s or longer: ", r->opts->older_than);
	else if (!r->is_inuse)
		snprintf(title, sizeof(title), "Total %.40s: ", report_value_title(r));
	else if (is_since(r)) {
		format_since(r, text, sizeof(text));
		snprintf(title, sizeof(title), "In use, allocated since %.20s: ", text);
	} else if (r->p->recording.is_known && !r->p->recording.is_from_start)
		/* scripts look for the line that begins so, and read its seventh word */
		snprintf(title, sizeof(title), "Held (allocated while recording, not freed): ");
	else
		snprintf(title, sizeof(title), "In use: ");
	report_line_add(l, "", "%s%s%s", title, is_least ? "at least " : "",
			report_format_value(r, report_value(row), value));
	add_interval(r, row, is_least || report_lacks(r->p, REPORT_LACKS_PROCESSES), l);
	add_blocks(row->objects, r->objects_type >= 0, l);
	if (!report_is_at_end(r)) /* more than the peak, perhaps: they did not all end at once */
		report_line_add(l, " ",
				r->p->recording.process_cnt > 1 ? "at the end of each" :
								  "at the end");
	if (!isnan(growth))
		report_line_add(l, ", ", "%s/min", format_bytes(growth, value, sizeof(value)));
}

static void add_watched(const struct report *r, struct report_line *l)
{
	const struct recording *rec = &r->p->recording;
	char text[UNITS_BUF];

	if (rec->is_known && rec->duration_ns > 0 &&
	    (double)rec->watched_ns < 0.999 * (double)rec->duration_ns)
		report_line_add(l, " ", "in the %s that were recorded",
				format_duration((uint64_t)rec->watched_ns, text, sizeof(text)));
}

static void put_values(const struct report *r, FILE *out)
{
	/* a full line is followed by a mark */
	struct report_line l = { .out = out, .columns = report_columns(r) - 1, .indent = 2 };
	char value[UNITS_BUF], interval[REPORT_INTERVAL_BUF];
	bool has_held;

	if (r->p->recording.has_no_tap)
		return; /* what was allocated is unknown, too */
	if (r->is_unknown && !r->is_inuse) { /* known instead of in-use */
		report_line_add(&l, "", "Allocated %s",
				report_format_value(r, report_value(&r->total), value));
		add_interval(r, &r->total, true, &l);
		add_blocks(r->total.objects, r->objects_type >= 0, &l);
		add_watched(r, &l);
		report_line_end(&l);
		return;
	}
	/* Of a scope only the shown moment is known. */
	has_held = !r->is_unknown && (report_is_at_end(r) || !r->opts->scope);
	if (has_held)
		add_held(r, &l);
	if (r->alloc_type >= 0) {
		report_line_add(&l, "; ", "%s %s", has_held ? "allocated" : "Allocated",
				format_bytes(report_alloc(&r->total), value, sizeof(value)));
		report_format_alloc_interval(r, &r->total, interval);
		if (interval[0] && strcmp(interval, "exact") != 0)
			report_line_add(&l, " ", "%s", interval);
		add_blocks(r->total.alloc_objects, r->alloc_objects_type >= 0, &l);
	}
	add_watched(r, &l);
	report_line_end(&l);
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
static bool lacks_something(const struct report *r)
{
	return report_is_least(r) || report_lacks(r->p, REPORT_LACKS_PROCESSES) ||
	       r->p->recording.inuse == RECORDING_INUSE_SINCE ||
	       (r->p->moment.at == PROFILE_AT_TIME && r->p->is_history_partial);
}

static void add_total(const struct report *r, const char *title, const struct report_row *row,
		      struct report_line *l)
{
	char value[UNITS_BUF];
	bool is_least = lacks_something(r);

	report_line_add(l, "", "%s: %s%s", title, is_least ? "at least " : "",
			report_format_value(r, report_value(row), value));
	add_interval(r, row, is_least, l);
	add_blocks(row->objects, r->p->moment.at != PROFILE_AT_TIME, l);
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
static void put_shown_moment(const struct report *r, FILE *out)
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

/* What was in use at the peak, or at the moment that the report is of. */
static void put_moment(const struct report *r, FILE *out)
{
	if (!r->is_inuse || r->is_unknown || r->opts->older_than)
		return;
	if (!report_is_at_end(r))
		put_shown_moment(r, out);
	else if (!r->opts->scope && r->at_peak.value)
		put_peak(r, out);
}

/* The command can be copied: it stays on one line, alone if necessary. */
static void put_way(const struct report *r, const char *what, const char *command, const char *cost,
		    FILE *out)
{
	struct report_line l = { .out = out, .columns = report_columns(r), .indent = 2 };
	char line[RECORDING_TEXT_BUF + 32];

	report_line_add(&l, "", "%s: %s", what, command);
	snprintf(line, sizeof(line), "(%s)", cost);
	if (l.used + 1 + strlen(line) <= l.columns) {
		report_line_add(&l, " ", "%s", line);
		report_line_end(&l);
		return;
	}
	report_line_end(&l);
	fputs("  ", out);
	report_put_wrapped(line, 2, report_columns(r) - 2, out);
}

static void put_unknown(const struct report *r, FILE *out)
{
	const struct recording *rec = &r->p->recording;
	const char *comm = profile_text(r->p, rec->comm_str);
	char text[RECORDING_TEXT_BUF], line[RECORDING_TEXT_BUF + 32], cost[RECORDING_TEXT_BUF];
	const char *what = "To measure it";

	recording_why_unknown(rec, comm, text);
	snprintf(line, sizeof(line), "In use: UNKNOWN. %s", text);
	report_put_wrapped(line, 2, report_columns(r), out);
	if (recording_advice_tap(rec, text)[0]) {
		put_way(r, what, text, RECORDING_TAP_COST, out);
		what = "Or with probes";
	}
	recording_advice(rec, r->rate_bytes, text);
	put_way(r, what, text, recording_advice_cost(rec, cost), out);
}

static bool is_growth(const struct recording *rec, double growth)
{
	return growth >= GROWTH_BYTES_MIN &&
	       growth >= GROWTH_SHARE_MIN * (double)rec->rss_begin_bytes;
}

/* Does what is held explain the growth of the process? */
static void add_explained(const struct report *r, double growth, struct report_line *l)
{
	const struct report_row *row = report_end_total(r);
	double low = (double)row->value, high = low, held = low;

	if (!report_interval(r, row, &low, &high))
		low = high = held;
	if ((growth >= low && growth <= high) || held >= EXPLAINED_SHARE * growth)
		report_line_add(l, ": ", "blocks in use account for the growth");
	else
		report_line_add(l, ": ", "blocks in use account for %.0f %% of the growth",
				100 * held / growth);
}

/* In a sentence of its own, because no process holds it any more. */
static void put_exec_held(const struct report *r, FILE *out)
{
	const struct recording *rec = &r->p->recording;
	struct report_line l = { .out = out, .columns = report_columns(r), .indent = 2 };
	char bytes[UNITS_BUF];

	if (!rec->is_known || !rec->exec_held_bytes || r->opts->scope)
		return;
	report_line_add(&l, "", "Released by exec: %s",
			format_bytes((double)rec->exec_held_bytes, bytes, sizeof(bytes)));
	add_blocks((int64_t)rec->exec_held_objects, true, &l);
	report_line_end(&l);
}

static bool find_unexplained(const struct report *r, struct witness *w)
{
	if (r->opts->scope || r->opts->older_than)
		return false;
	witness_find(r->p, w);
	return w->is_unexplained;
}

/* Before the rows: they are not what made the process grow. */
static void put_unexplained(const struct report *r, FILE *out)
{
	char words[WITNESS_WORDS];
	struct witness w;

	if (find_unexplained(r, &w))
		report_put_wrapped(witness_words(&w, words), 2, report_columns(r), out);
}

/* What is resident, by row, which was read from the process. It may have been said before. */
static void put_rows(const struct report *r, FILE *out)
{
	char words[RESIDENT_WORDS], why[RESIDENT_WORDS], text[2 * RESIDENT_WORDS + 2];
	struct witness w;

	resident_words(r->p, words);
	resident_why_words(r->p, why);
	if (find_unexplained(r, &w) && !w.was_freed && w.rows[0])
		words[strcspn(words, ":")] = '\0';
	snprintf(text, sizeof(text), "%s%s%s", words, *why ? "; " : "", why);
	report_put_wrapped(text, 2, report_columns(r), out);
}

/* In one piece if it fits. */
static void add_why(struct report_line *l, const char *why)
{
	if (l->indent + report_width(why) <= l->columns)
		report_line_add(l, "; ", "%s", why);
	else
		report_line_add_words(l, "; ", why);
}

static void put_resident(const struct report *r, FILE *out)
{
	const struct recording *rec = &r->p->recording;
	struct report_line l = { .out = out, .columns = report_columns(r), .indent = 2 };
	char range[RESIDENT_RANGE], why[RESIDENT_WORDS];
	const struct resident_rows *rows = &r->p->resident;
	struct resident_growth g;
	double growth = witness_growth(r->p);
	bool has_rows = rec->is_known && rows->is_asked && rows->end.is_known;

	if (has_rows)
		put_rows(r, out);
	/* Rows of some time before may not say what is resident at the end. */
	if (has_rows && (!rows->end.age_ns || (resident_growth(r->p, &g) && !g.is_by_row)))
		return;
	if (!rec->is_known || !rec->rss_begin_bytes || !rec->rss_end_bytes)
		return;
	report_line_add(&l, "", "Resident %s",
			resident_range_words((double)rec->rss_begin_bytes,
					     (double)rec->rss_end_bytes, range));
	if (is_growth(rec, growth) && r->is_inuse && !(has_rows && rows->begin.is_known) &&
	    rec->inuse == RECORDING_INUSE_ALL && !r->opts->scope && !r->opts->older_than)
		add_explained(r, growth, &l);
	if (rows->is_asked && !has_rows)
		add_why(&l, resident_why_words(r->p, why));
	report_line_end(&l);
}

/* Write which part of the profile the rest is about. */
static void put_scope(const struct report *r, FILE *out)
{
	struct report_line l = { .out = out, .columns = report_columns(r), .indent = 2 };
	char part[UNITS_BUF], whole[UNITS_BUF], scope[REPORT_FIT_BUF];
	size_t columns = report_columns(r);
	bool is_void = r->is_unknown && r->is_inuse;

	report_format_value(r, report_value(&r->total), part);
	report_format_value(r, report_value(&r->whole), whole);
	report_fit_name(r->opts->scope,
			columns > 102 ? columns - 62 :
			columns < 60  ? columns - 18 :
					40,
			scope);
	report_line_add(&l, "", "Scope %s and below%s", scope, is_void ? "" : ":");
	if (!is_void)
		report_line_add(&l, " ", "%s of the profile's %s", part, whole);
	if (!is_void && r->whole.value)
		report_line_add(&l, " ", "(%.1f%%)",
				100.0 * (double)r->total.value / (double)r->whole.value);
	report_line_end(&l);
}

/* Old profiles could say that in-use is unknown. */
static void put_old_inuse(const struct report *r, FILE *out)
{
	const char *inuse = find_comment(r->p, "in-use: ");

	if (!inuse || r->p->recording.is_known)
		return;
	fputs("In use: ", out);
	report_put_name(out, inuse, report_columns(r) - 8);
	fputc('\n', out);
}

/* Say which memory the profile cannot have. */
static void put_not_seen(const struct report *r, FILE *out)
{
	const char *text;
	size_t at = 0;

	while ((text = report_next_unseen(r->p, &at))) {
		fputs("Not seen: ", out);
		report_put_wrapped(text, 2, report_columns(r) - 10, out);
	}
}

/* The largest of those by size, or by C++ class. */
static void put_before_classes(const struct report *r, bool is_by_size, FILE *out)
{
	struct report_line l = { .out = out, .columns = report_columns(r), .indent = 4 };
	char size[64], cnt[UNITS_BUF], bytes[UNITS_BUF], name[REPORT_FIT_BUF];
	const struct resident_class *c;
	struct report_before_class b;
	int shown = 0;

	vec_each(&r->p->resident.classes, c) {
		if (!report_find_before_class(r, c, &b) || !b.name != is_by_size ||
		    shown == BEFORE_CLASSES_SHOWN)
			continue;
		snprintf(size, sizeof(size), "%" PRIu64 " to %" PRIu64 " bytes", b.from_bytes,
			 b.to_bytes);
		report_line_add(&l, shown ? ", " : "", "%s%s %s (%s)",
				shown	   ? "" :
				is_by_size ? "  by size: " :
					     "  by C++ class: ",
				is_by_size ? size : report_fit_name(b.name, 40, name),
				format_count(round(b.objects), cnt, sizeof(cnt)),
				format_bytes(b.bytes, bytes, sizeof(bytes)));
		shown++;
	}
	if (shown)
		report_line_end(&l);
}

#define BEFORE_NARROW 0.9 /* the number alone says enough */

static void report_put_before(const struct report *r, FILE *out)
{
	struct report_line l = { .out = out, .columns = report_columns(r), .indent = 2 };
	char cnt[UNITS_BUF], bytes[UNITS_BUF], low[UNITS_BUF], high[UNITS_BUF], range[64] = "";
	struct report_before b;

	if (!report_find_before(r, &b))
		return;
	if (b.bytes_low <= 0 || b.objects_low <= 0) {
		report_line_add(&l, "",
				"Allocated before the recording, still live: at most %s blocks, "
				"%s",
				format_count(ceil(b.objects_high), cnt, sizeof(cnt)),
				format_bytes(b.bytes_high, bytes, sizeof(bytes)));
		report_line_end(&l);
		return;
	}
	if (b.objects_low < BEFORE_NARROW * b.objects_high)
		snprintf(range, sizeof(range), " (%s to %s)",
			 format_count(floor(b.objects_low), low, sizeof(low)),
			 format_count(ceil(b.objects_high), high, sizeof(high)));
	report_line_add(&l, "", "Allocated before the recording, still live: %s blocks%s, %s",
			format_count(round(b.objects), cnt, sizeof(cnt)), range,
			format_bytes(b.bytes, bytes, sizeof(bytes)));
	report_line_add(&l, " ", "(%s to %s)", format_bytes(b.bytes_low, low, sizeof(low)),
			format_bytes(b.bytes_high, high, sizeof(high)));
	report_line_end(&l);
	put_before_classes(r, true, out);
	put_before_classes(r, false, out);
}

/* Did the process grow by something of which less than half is in the report's total? */
static bool is_mostly_unseen(const struct report *r)
{
	const struct recording *rec = &r->p->recording;
	double growth = witness_growth(r->p);

	return rec->is_known && r->is_inuse && rec->rss_end_bytes &&
	       (rec->rss_begin_bytes || rec->is_from_start) && is_growth(rec, growth) &&
	       (double)report_end_total(r)->value < REPORT_SEEN_SHARE * growth;
}

void report_put_head(const struct report *r, FILE *out)
{
	bool is_unseen_first = is_mostly_unseen(r);

	put_reason(r, out);
	if (r->p->recording.is_known) {
		put_who(r, out);
		put_unrecorded(r, out);
	} else {
		put_what(r, out);
	}
	put_unexplained(r, out);
	if (is_unseen_first)
		put_not_seen(r, out);
	if (r->is_unknown)
		put_unknown(r, out);
	put_moment(r, out);
	put_values(r, out);
	put_old_inuse(r, out);
	put_exec_held(r, out);
	put_resident(r, out);
	report_put_before(r, out);
	if (!is_unseen_first)
		put_not_seen(r, out);
	if (r->opts->scope)
		put_scope(r, out);
}
