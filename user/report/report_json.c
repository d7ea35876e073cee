/* SPDX-License-Identifier: MIT */
/*
 * report_json.c - a report for programs: one JSON object, written piece by piece.
 *
 * The keys are stable: new ones may be added, none renamed. For a profile without inuse_space the
 * rows have "value" and "objects" instead of "inuse_bytes" and "inuse_objects"; "value_type" and
 * "value_unit" say what they are. Unknown values are null. Names are never shortened.
 */

#include "base/json.h"
#include "profile/resident_words.h"
#include "profile/witness.h"
#include "report/report_rows.h"
#include "report/report_text.h"

/* Write a number that only some profiles have. */
static void put_optional(struct json *j, const char *key, bool is_known, int64_t value)
{
	if (is_known)
		json_format(j, key, "%" PRId64, value);
	else
		json_null(j, key);
}

/* The value is whole, or shown as a floating-point number because it is beyond INT64_MAX. */
static void put_bytes(struct json *j, const char *key, bool is_known, int64_t value, double shown)
{
	if (is_known && value == INT64_MAX)
		json_format(j, key, "%.0f", shown);
	else
		put_optional(j, key, is_known, value);
}

/* Are the values in-use ones, and in-use is unknown? */
static bool is_void(const struct report *r)
{
	return r->is_unknown && r->is_inuse;
}

static void put_interval(const struct report *r, const struct report_row *row, struct json *j)
{
	double low = NAN, high = NAN;

	if (!is_void(r))
		report_interval(r, row, &low, &high);
	json_number(j, r->is_inuse ? "inuse_bytes_low" : "value_low", 0, low);
	json_number(j, r->is_inuse ? "inuse_bytes_high" : "value_high", 0, high);
}

static void put_alloc_interval(const struct report *r, const struct report_row *row, struct json *j)
{
	double low = NAN, high = NAN;

	report_alloc_interval(r, row, &low, &high);
	json_number(j, "alloc_bytes_low", 0, low);
	json_number(j, "alloc_bytes_high", 0, high);
}

static void put_growth(const struct report *r, const struct report_row *row, struct json *j)
{
	static const char *const verdicts[] = {
		[GROWTH_UNKNOWN] = "unknown",
		[GROWTH_GROWS] = "grows",
		[GROWTH_STEADY] = "steady",
	};
	struct growth g;
	bool is_known = report_growth(r, row, 1, &g);

	json_text(j, "growth", verdicts[g.verdict]);
	json_number(j, "growth_bytes_per_s", 1, is_known ? g.bytes_per_s : NAN);
	json_number(j, "growth_bytes_per_s_low", 1, is_known ? g.low : NAN);
	json_number(j, "growth_bytes_per_s_high", 1, is_known ? g.high : NAN);
	put_optional(j, "growth_more_s", g.verdict == GROWTH_UNKNOWN && g.more_s > 0,
		     (int64_t)g.more_s);
}

/* Most profiles have none. */
static void put_pinned(const struct report *r, const struct report_row *row, struct json *j)
{
	double low, high;

	if (r->pinned_type < 0)
		return;
	estimate_interval(&row->pinned, &low, &high);
	json_number(j, "pinned_bytes", 0, row->pinned.bytes);
	json_number(j, "pinned_bytes_low", 0, low);
	json_number(j, "pinned_bytes_high", 0, high);
}

/* Half of the bytes in use are older than the median. */
static void put_age(const struct report *r, const struct report_row *row, struct json *j)
{
	double median;

	if (!r->is_inuse || is_void(r) || !age_median_s(&row->ages, &median) || !isfinite(median)) {
		json_null(j, "age_s");
		return;
	}
	json_begin(j, "age_s", '{');
	json_format(j, "median", "%.3f", median);
	json_format(j, "oldest", "%.3f", (double)row->ages.oldest_ns / 1e9);
	json_end(j, '}');
}

static void put_bin_list(const char *key, const struct bin_sums *sums, uint32_t first, uint32_t cnt,
			 struct json *j)
{
	bool is_life = first == HT_BIN_LIFE;

	json_begin(j, key, '[');
	for (uint32_t bin = first; bin < first + cnt; bin++) {
		if (!(sums->objects[bin] > 0))
			continue;
		json_begin(j, NULL, '{');
		json_format(j, is_life ? "from_ns" : "from_bytes", "%" PRIu64, bin_from(bin));
		put_optional(j, is_life ? "to_ns" : "to_bytes", bin_to(bin) != UINT64_MAX,
			     (int64_t)bin_to(bin));
		json_format(j, "objects", "%.0f", sums->objects[bin]);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_temporary(const struct report *r, const struct report_row *row, bool has_lifetimes,
			  struct json *j)
{
	struct bin_share s = { 0 };
	bool is_known = report_temporary(r, row, &s);

	put_optional(j, "temporary_objects", has_lifetimes,
		     (int64_t)fmin(bin_temporary_objects(&row->bins) + 0.5, 0x1p62));
	json_number(j, "temporary_share", 6, is_known ? s.share : NAN);
	json_number(j, "temporary_share_low", 6, is_known ? s.low : NAN);
	json_number(j, "temporary_share_high", 6, is_known ? s.high : NAN);
}

/* Bins of what was allocated. Rows by class have no bins of their own, and tasks have only sums. */
static void put_bins(const struct report *r, const struct report_row *row, struct json *j)
{
	const struct bin_sums *sums = &row->bins;
	bool has_sizes =
		sums->is_known && !report_is_by_class(r->opts) && r->opts->by != REPORT_BY_INSTANCE;
	bool has_lifetimes = has_sizes && r->has_lifetimes;

	put_optional(j, "freed_bytes", has_lifetimes, profile_value(sums->freed_bytes));
	put_optional(j, "freed_objects", has_lifetimes,
		     (int64_t)fmin(sums->freed_objects + 0.5, 0x1p62));
	put_temporary(r, row, has_lifetimes, j);
	if (has_lifetimes)
		put_bin_list("lifetimes", sums, HT_BIN_LIFE, HT_BIN_LIFE_CNT, j);
	else
		json_null(j, "lifetimes");
	if (has_sizes)
		put_bin_list("sizes", sums, HT_BIN_SIZE, HT_BIN_SIZE_CNT, j);
	else
		json_null(j, "sizes");
}

static void put_values(const struct report *r, const struct report_row *row, struct json *j)
{
	put_bytes(j, r->is_inuse ? "inuse_bytes" : "value", !is_void(r), row->value,
		  report_value(row));
	put_interval(r, row, j);
	put_optional(j, r->is_inuse ? "inuse_objects" : "objects",
		     r->objects_type >= 0 && !is_void(r), row->objects);
	put_bytes(j, "alloc_bytes", r->alloc_type >= 0 && !row->task.has_no_alloc, row->alloc,
		  report_alloc(row));
	put_alloc_interval(r, row, j);
	put_optional(j, "alloc_objects", r->alloc_objects_type >= 0 && !row->task.has_no_alloc,
		     row->alloc_objects);
	put_optional(j, "sample_cnt", r->has_interval && !is_void(r), row->estimate.samples);
	json_bool(j, "is_weak", r->has_interval && !is_void(r) && estimate_is_weak(&row->estimate));
	json_number(j, "share", 6,
		    r->total.value && !is_void(r) ? (double)row->value / r->total.value : NAN);
	put_pinned(r, row, j);
	put_growth(r, row, j);
	put_age(r, row, j);
	put_bins(r, row, j);
}

static void put_frame(const struct report *r, const struct report_frame *f, struct json *j)
{
	const struct profile *p = r->p;
	char buf[REPORT_NAME_BUF];
	const char *file = "";

	if (f->line)
		file = profile_text(p, p->functions.data[f->line->function].filename_str);
	json_begin(j, NULL, '{');
	json_text(j, "function", report_frame_name(p, f, buf, sizeof(buf)));
	json_text(j, "file", file);
	json_format(j, "line", "%" PRId64, f->line ? f->line->line : 0);
	json_text(j, "module", report_frame_module(p, f));
	/* A string, because many readers hold JSON's numbers as doubles. */
	json_format(j, "address", "\"0x%" PRIx64 "\"", f->location->address);
	json_bool(j, "is_inlined", f->is_inlined);
	json_end(j, '}');
}

static void put_frames(const struct report *r, const struct profile_sample *s, struct json *j)
{
	size_t cap = r->opts->frame_cap, n = 0;
	struct report_frame_pos pos = { 0 };
	struct report_frame f;

	json_begin(j, "frames", '[');
	for (; (!cap || n < cap) && report_next_frame(r->p, s, &pos, &f); n++)
		put_frame(r, &f, j);
	for (cap = 0; report_next_frame(r->p, s, &pos, &f);)
		cap++;
	json_end(j, ']');
	json_format(j, "frames_omitted_cnt", "%zu", cap);
}

/* Write the part of each thread and scope in a stack. The parts add up to the row. */
static void put_parts(const struct report *r, const struct report_row *row, struct json *j)
{
	json_begin(j, "threads", '[');
	for (uint32_t i = 0; i < row->sample_cnt; i++) {
		const struct profile_sample *s =
			&r->p->samples.data[r->order.data[row->sample_first + i]];
		const char *scope = profile_sample_label(r->p, s, "scope");

		json_begin(j, NULL, '{');
		json_text(j, "thread", profile_sample_label(r->p, s, "thread"));
		if (scope) /* most profiles have no scopes */
			json_text(j, "scope", scope);
		put_optional(j, r->is_inuse ? "inuse_bytes" : "value", !is_void(r),
			     report_sample_value(r, s, r->value_type));
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_peak(const struct report *r, const struct report_row *row, struct json *j)
{
	const struct report_peak *p = &row->peak;
	bool is_known = p->is_known && !is_void(r);

	put_optional(j, "peak_bytes", is_known, p->bytes);
	put_optional(j, "peak_time_ns", is_known && p->time_ns > 0, p->time_ns);
	json_bool(j, "peak_is_minimum", p->is_minimum);
}

static void put_path(const struct report *r, const char *key, int64_t path, struct json *j)
{
	json_text(j, key, path ? strset_get(r->names, path) : NULL);
}

static void put_scope(const struct report *r, const struct report_row *row, struct json *j)
{
	const struct report_exclusive *own = &row->scope.exclusive;

	put_path(r, "path", row->scope.path, j);
	json_format(j, "depth", "%" PRIu32, row->scope.depth);
	put_optional(j, r->is_inuse ? "exclusive_inuse_bytes" : "exclusive_value", !is_void(r),
		     own->bytes);
	put_optional(j, r->is_inuse ? "exclusive_inuse_objects" : "exclusive_objects",
		     r->objects_type >= 0 && !is_void(r), own->objects);
	put_optional(j, "exclusive_alloc_bytes", r->alloc_type >= 0, own->alloc_bytes);
	put_optional(j, "exclusive_alloc_objects", r->alloc_objects_type >= 0, own->alloc_objects);
	put_peak(r, row, j);
}

static void put_task(const struct report *r, const struct report_row *row, struct json *j)
{
	static const char *const states[] = {
		[REPORT_STATE_UNKNOWN] = NULL,
		[REPORT_STATE_LIVE] = "live",
		[REPORT_STATE_EXITED] = "exited",
	};

	put_path(r, "scope", row->scope.path, j);
	/* A string, because many readers hold JSON's numbers as doubles. */
	if (row->task.is_task)
		json_format(j, "task", "\"%" PRIu64 "\"", (uint64_t)row->task.id);
	else
		json_null(j, "task");
	put_path(r, "pid", row->task.pid, j);
	json_text(j, "state", states[row->task.state]);
	put_peak(r, row, j);
}

static void put_row(const struct report *r, const struct report_row *row, struct json *j)
{
	json_begin(j, NULL, '{');
	json_text(j, "name", strset_get(r->names, row->name));
	put_values(r, row, j);
	if (r->opts->by == REPORT_BY_FUNCTION)
		put_optional(j, r->is_inuse ? "cumulative_inuse_bytes" : "cumulative_value",
			     !row->row_cnt && !is_void(r), row->cumulative);
	if (r->opts->by == REPORT_BY_SCOPE)
		put_scope(r, row, j);
	if (r->opts->by == REPORT_BY_INSTANCE)
		put_task(r, row, j);
	if (row->row_cnt)
		json_format(j, "row_cnt", "%zu", row->row_cnt);
	if (row->sample_cnt) {
		put_frames(r, &r->p->samples.data[r->order.data[row->sample_first]], j);
		put_parts(r, row, j);
	}
	json_end(j, '}');
}

static bool is_size(uint64_t bytes)
{
	return bytes && bytes <= INT64_MAX;
}

static void put_percent(struct json *j, const char *key, double share)
{
	if (isnan(share))
		json_null(j, key);
	else
		json_format(j, key, "%.6g", 100 * share);
}

/* Write the limit that was in force; null if processes had different ones. */
static void put_limit(const struct recording *rec, struct json *j)
{
	const struct recording_limit *l = &rec->limit;
	bool is_of_one_cpu = recording_is_of_one_cpu(rec);

	if (!rec->is_known || (l->cpu_share > 0) == (l->one_cpu > 0)) {
		json_null(j, "limit_percent");
		json_null(j, "limit_of");
		return;
	}
	put_percent(j, "limit_percent", is_of_one_cpu ? l->one_cpu : l->cpu_share);
	json_text(j, "limit_of", is_of_one_cpu ? "one_cpu" : "cpu_time");
}

static void put_process(const struct report *r, struct json *j)
{
	const struct recording *rec = &r->p->recording;

	if (!rec->is_known) {
		json_null(j, "process");
		return;
	}
	json_begin(j, "process", '{');
	json_format(j, "pid", "%" PRId32, rec->pid);
	json_text(j, "comm", profile_text(r->p, rec->comm_str));
	json_text(j, "exe", profile_text(r->p, rec->exe_str));
	json_format(j, "process_cnt", "%" PRIu32, rec->process_cnt ? rec->process_cnt : 1);
	json_end(j, '}');
}

/* The rows of a reading that is not known are null. */
static void put_resident_row(const struct report *r, const struct resident_row *row, struct json *j)
{
	const struct resident_rows *rows = &r->p->resident;

	json_line(j);
	json_begin(j, NULL, '{');
	json_text(j, "row", profile_text(r->p, row->name_str));
	json_text(j, "label", profile_text(r->p, row->label_str));
	put_optional(j, "begin_bytes", rows->begin.is_known, row->begin_bytes);
	put_optional(j, "end_bytes", rows->end.is_known, row->end_bytes);
	json_end(j, '}');
}

/* Resident memory by row, as it was read from the process; null: it was not tried. */
static void put_resident(const struct report *r, struct json *j)
{
	const struct resident_rows *rows = &r->p->resident;
	const struct resident_row *row;
	char why[RESIDENT_WORDS];

	if (!r->p->recording.is_known || !rows->is_asked) {
		json_null(j, "resident");
		return;
	}
	json_begin(j, "resident", '{');
	/* the size may be known without the rows */
	put_optional(j, "begin_bytes", is_size(rows->begin.rss_bytes),
		     (int64_t)rows->begin.rss_bytes);
	put_optional(j, "end_bytes", is_size(rows->end.rss_bytes), (int64_t)rows->end.rss_bytes);
	if (rows->end.age_ns)
		json_number(j, "end_age_s", 1, (double)rows->end.age_ns / 1e9);
	json_bool(j, "begin_heap_is_read", rows->begin.is_known && rows->begin.is_proved);
	json_bool(j, "end_heap_is_read", rows->end.is_known && rows->end.is_proved);
	json_text(j, "why_not", resident_why_words(r->p, why)[0] ? why : NULL);
	json_begin(j, "rows", '[');
	vec_each(&rows->list, row)
		put_resident_row(r, row, j);
	json_end(j, ']');
	json_end(j, '}');
}

static void put_before_class(const struct report_before_class *c, struct json *j)
{
	json_line(j);
	json_begin(j, NULL, '{');
	json_text(j, "class", c->name);
	put_optional(j, "from_bytes", !c->name, (int64_t)c->from_bytes);
	put_optional(j, "to_bytes", !c->name, (int64_t)c->to_bytes);
	json_number(j, "objects", 0, c->objects);
	json_number(j, "objects_low", 0, c->objects_low);
	json_number(j, "objects_high", 0, c->objects_high);
	json_number(j, "bytes", 0, c->bytes);
	json_end(j, '}');
}

static void put_before(const struct report *r, struct json *j)
{
	const struct resident_class *of;
	struct report_before_class c;
	struct report_before b;

	if (!report_find_before(r, &b)) {
		json_null(j, "allocated_before");
		return;
	}
	json_begin(j, "allocated_before", '{');
	json_number(j, "objects", 0, b.objects);
	json_number(j, "objects_low", 0, b.objects_low);
	json_number(j, "objects_high", 0, b.objects_high);
	json_number(j, "bytes", 0, b.bytes);
	json_number(j, "bytes_low", 0, b.bytes_low);
	json_number(j, "bytes_high", 0, b.bytes_high);
	json_begin(j, "classes", '[');
	vec_each(&r->p->resident.classes, of)
		if (report_find_before_class(r, of, &c))
			put_before_class(&c, j);
	json_end(j, ']');
	json_end(j, '}');
}

/* Write how it was recorded, and what its numbers are. */
static void put_recording(const struct report *r, struct json *j)
{
	static const char *const inuse[] = {
		[RECORDING_INUSE_ALL] = "known",
		[RECORDING_INUSE_SINCE] = "since",
		[RECORDING_INUSE_UNKNOWN] = "unknown",
	};
	const struct recording *rec = &r->p->recording;
	bool is_known = rec->is_known;
	bool is_since = is_known && rec->inuse == RECORDING_INUSE_SINCE;
	struct witness w;

	witness_find(r->p, &w);
	put_percent(j, "overhead_percent", is_known ? rec->overhead_share : NAN);
	put_percent(j, "overhead_one_cpu_percent", is_known ? rec->overhead_one_cpu : NAN);
	put_limit(rec, j);
	put_process(r, j);
	json_text(j, "reason",
		  is_known && rec->reason_str ? profile_text(r->p, rec->reason_str) : NULL);
	json_text(j, "inuse", is_known ? inuse[rec->inuse] : NULL);
	put_optional(j, "inuse_since_ns", is_since && rec->inuse_since_ns > 0, rec->inuse_since_ns);
	put_optional(j, "watched_ns", is_known && rec->duration_ns > 0, rec->watched_ns);
	put_optional(j, "rss_begin_bytes", is_known && is_size(rec->rss_begin_bytes),
		     (int64_t)rec->rss_begin_bytes);
	put_optional(j, "rss_end_bytes", is_known && is_size(rec->rss_end_bytes),
		     (int64_t)rec->rss_end_bytes);
	put_optional(j, "exec_held_bytes", is_size(rec->exec_held_bytes),
		     (int64_t)rec->exec_held_bytes);
	put_optional(j, "unexplained_bytes", w.is_unexplained,
		     profile_value(w.growth_bytes - w.held_bytes));
	put_resident(r, j);
	put_before(r, j);
	if (is_known)
		json_bool(j, "is_lossy", rec->is_lossy);
	else
		json_null(j, "is_lossy");
}

/* The moment of the in-use values, since the begin of the recording; and the peak, whatever that moment is. */
static void put_moment(const struct report *r, struct json *j)
{
	static const char *const names[] = {
		[PROFILE_AT_END] = "end",
		[PROFILE_AT_PEAK] = "peak",
		[PROFILE_AT_TIME] = "time",
	};
	const struct profile *p = r->p;
	const struct estimate *peak = &r->at_peak.estimate;
	double low, high;

	json_text(j, "at", names[p->moment.at]);
	put_optional(j, "at_ns", !report_is_at_end(r), p->moment.ns);
	if (!r->at_peak.value) {
		json_null(j, "peak");
		return;
	}
	estimate_interval(peak, &low, &high);
	json_begin(j, "peak", '{');
	json_number(j, "bytes", 0, peak->bytes);
	json_number(j, "bytes_low", 0, low);
	json_number(j, "bytes_high", 0, high);
	json_number(j, "objects", 0, peak->objects);
	json_format(j, "at_ns", "%" PRId64, p->recording.peak_ns);
	json_end(j, '}');
}

static void put_head(const struct report *r, struct json *j)
{
	static const char *const by[] = {
		[REPORT_BY_STACK] = "stack",	 [REPORT_BY_FUNCTION] = "function",
		[REPORT_BY_MODULE] = "module",	 [REPORT_BY_THREAD] = "thread",
		[REPORT_BY_SCOPE] = "scope",	 [REPORT_BY_INSTANCE] = "instance",
		[REPORT_BY_LABEL] = "label",	 [REPORT_BY_AGE] = "age",
		[REPORT_BY_SIZE] = "size",	 [REPORT_BY_LIFETIME] = "lifetime",
		[REPORT_BY_PROCESS] = "process",
	};
	const struct profile *p = r->p;
	int64_t duration_ns = p->duration_ns > 0    ? p->duration_ns :
			      p->recording.is_known ? p->recording.duration_ns :
						      0;
	bool is_by_bytes =
		!strcmp(profile_text(p, p->period_type.unit_str), "bytes") && p->period > 0;

	json_text(j, "by", by[r->opts->by]);
	if (r->opts->by == REPORT_BY_LABEL)
		json_text(j, "label", r->opts->label_key);
	json_text(j, "value_type", profile_text(p, p->types.data[r->value_type].type_str));
	json_text(j, "value_unit", profile_text(p, p->types.data[r->value_type].unit_str));
	put_optional(j, "time_ns", p->time_ns > 0, p->time_ns);
	put_optional(j, "duration_ns", duration_ns > 0, duration_ns);
	put_optional(j, "rate_bytes", is_by_bytes, p->period);
	put_moment(r, j);
	put_recording(r, j);
	json_line(j);
	json_begin(j, "total", '{');
	put_values(r, &r->total, j);
	if (r->opts->scope) {
		json_text(j, "scope", r->opts->scope);
		put_optional(j, r->is_inuse ? "profile_inuse_bytes" : "profile_value", !is_void(r),
			     r->whole.value);
	}
	json_end(j, '}');
}

static void put_rows(const struct report *r, const struct report_row *rows, size_t cnt,
		     struct json *j)
{
	json_begin(j, "rows", '[');
	for (size_t i = 0; i < cnt; i++) {
		json_line(j);
		put_row(r, &rows[i], j);
	}
	json_end(j, ']');
}

static void put_outstanding(const struct report *r, struct json *j)
{
	const struct report_row *all = &r->outstanding_total;

	json_line(j);
	json_begin(j, "outstanding", '{');
	put_optional(j, "task_cnt", !is_void(r), (int64_t)all->row_cnt);
	put_optional(j, "inuse_bytes", !is_void(r), all->value);
	put_optional(j, "inuse_objects", !is_void(r), all->objects);
	put_rows(r, r->outstanding.data, r->outstanding.cnt, j);
	json_end(j, '}');
}

int report_write_json(const struct report *r, FILE *out)
{
	struct json j = { .out = out };

	json_begin(&j, NULL, '{');
	put_head(r, &j);
	json_line(&j);
	put_rows(r, r->rows.data, r->rows.cnt, &j);
	if (r->opts->by == REPORT_BY_INSTANCE)
		put_outstanding(r, &j);
	json_line(&j);
	json_begin(&j, "comments", '[');
	for (size_t i = 0; i < r->p->comments.cnt; i++) {
		json_line(&j);
		json_text(&j, NULL, profile_text(r->p, r->p->comments.data[i]));
	}
	json_end(&j, ']');
	json_end(&j, '}');
	fputc('\n', out);
	return 0;
}
