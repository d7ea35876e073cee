/* SPDX-License-Identifier: MIT */
/*
 * report_json.c - a report for programs: one JSON object, written as it goes.
 *
 * The keys are stable: they may be added to, not renamed. Of a profile without inuse_space the
 * rows have "value" and "objects" in place of "inuse_bytes" and "inuse_objects"; "value_type" and
 * "value_unit" say of what. What is not known is null. Names are whole, never shortened.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_text.h"
#include "report/report_rows.h"

static void put_pair(FILE *out, const char *key, const char *value)
{
	fprintf(out, "\"%s\":", key);
	json_put_text(out, value);
}

/* A number that only some profiles have. */
static void put_first_optional(FILE *out, const char *key, bool is_known, int64_t value)
{
	if (is_known)
		fprintf(out, "\"%s\":%" PRId64, key, value);
	else
		fprintf(out, "\"%s\":null", key);
}

static void put_optional(FILE *out, const char *key, bool is_known, int64_t value)
{
	fputc(',', out);
	put_first_optional(out, key, is_known, value);
}

/* The values are of in-use, and that is not known. */
static bool is_void(const struct report *r)
{
	return r->is_unknown && r->is_inuse;
}

static void put_interval(const struct report *r, const struct report_row *row, FILE *out)
{
	const char *key = r->is_inuse ? "inuse_bytes" : "value";
	double low, high;

	if (is_void(r) || !report_interval(r, row, &low, &high)) {
		fprintf(out, ",\"%s_low\":null,\"%s_high\":null", key, key);
		return;
	}
	fprintf(out, ",\"%s_low\":%.0f,\"%s_high\":%.0f", key, low, key, high);
}

static void put_alloc_interval(const struct report *r, const struct report_row *row, FILE *out)
{
	double low, high;

	if (report_alloc_interval(r, row, &low, &high))
		fprintf(out, ",\"alloc_bytes_low\":%.0f,\"alloc_bytes_high\":%.0f", low, high);
	else
		fputs(",\"alloc_bytes_low\":null,\"alloc_bytes_high\":null", out);
}

static void put_values(const struct report *r, const struct report_row *row, FILE *out)
{
	put_first_optional(out, r->is_inuse ? "inuse_bytes" : "value", !is_void(r), row->value);
	put_interval(r, row, out);
	put_optional(out, r->is_inuse ? "inuse_objects" : "objects",
		     r->objects_type >= 0 && !is_void(r), row->objects);
	put_optional(out, "alloc_bytes", r->alloc_type >= 0 && !row->task.has_no_alloc, row->alloc);
	put_alloc_interval(r, row, out);
	put_optional(out, "alloc_objects", r->alloc_objects_type >= 0 && !row->task.has_no_alloc,
		     row->alloc_objects);
	put_optional(out, "sample_cnt", r->has_interval && !is_void(r), row->estimate.samples);
	fprintf(out, ",\"is_weak\":%s",
		r->has_interval && !is_void(r) && estimate_is_weak(&row->estimate) ? "true" :
										     "false");
	if (r->total.value && !is_void(r))
		fprintf(out, ",\"share\":%.6f", (double)row->value / r->total.value);
	else
		fputs(",\"share\":null", out);
}

static void put_frame(const struct report *r, const struct report_frame *f, FILE *out)
{
	const struct profile *p = r->p;
	char buf[REPORT_NAME_BUF];
	const char *file = "";

	if (f->line)
		file = profile_text(p, p->functions.data[f->line->function].filename_str);
	fputc('{', out);
	put_pair(out, "function", report_frame_name(p, f, buf, sizeof(buf)));
	fputc(',', out);
	put_pair(out, "file", file);
	fprintf(out, ",\"line\":%" PRId64 ",", f->line ? f->line->line : 0);
	put_pair(out, "module", report_frame_module(p, f));
	/* A string: JSON's numbers are doubles to many readers. */
	fprintf(out, ",\"address\":\"0x%" PRIx64 "\",\"is_inlined\":%s}", f->location->address,
		f->is_inlined ? "true" : "false");
}

static void put_frames(const struct report *r, const struct profile_sample *s, FILE *out)
{
	size_t cap = r->opts->frame_cap, n = 0;
	struct report_frame_pos pos = { 0 };
	struct report_frame f;

	fputs(",\"frames\":[", out);
	while ((!cap || n < cap) && report_next_frame(r->p, s, &pos, &f)) {
		fputs(n++ ? "," : "", out);
		put_frame(r, &f, out);
	}
	for (cap = 0; report_next_frame(r->p, s, &pos, &f);)
		cap++;
	fprintf(out, "],\"frames_omitted_cnt\":%zu", cap);
}

/* Only where it has one: most profiles have no scopes. */
static void put_scope_of(const struct report *r, const struct profile_sample *s, FILE *out)
{
	const char *scope = profile_sample_label(r->p, s, "scope");

	if (!scope)
		return;
	fputc(',', out);
	put_pair(out, "scope", scope);
}

/* What each thread has of a stack, and each scope; the parts add up to the row. */
static void put_parts(const struct report *r, const struct report_row *row, FILE *out)
{
	fputs(",\"threads\":[", out);
	for (uint32_t i = 0; i < row->sample_cnt; i++) {
		const struct profile_sample *s =
			&r->p->samples.data[r->order.data[row->sample_first + i]];
		const char *thread = profile_sample_label(r->p, s, "thread");

		fputs(i ? ",{\"thread\":" : "{\"thread\":", out);
		if (thread)
			json_put_text(out, thread);
		else
			fputs("null", out);
		put_scope_of(r, s, out);
		put_optional(out, r->is_inuse ? "inuse_bytes" : "value", !is_void(r),
			     r->p->values.data[s->value_first + r->value_type]);
		fputc('}', out);
	}
	fputc(']', out);
}

static void put_peak(const struct report *r, const struct report_row *row, FILE *out)
{
	const struct report_peak *p = &row->peak;
	bool is_known = p->is_known && !is_void(r);

	put_optional(out, "peak_bytes", is_known, p->bytes);
	put_optional(out, "peak_time_ns", is_known && p->time_ns > 0, p->time_ns);
	fprintf(out, ",\"peak_is_minimum\":%s", p->is_minimum ? "true" : "false");
}

static void put_path(const struct report *r, const char *key, int64_t path, FILE *out)
{
	fprintf(out, ",\"%s\":", key);
	if (path)
		json_put_text(out, strset_get(r->names, path));
	else
		fputs("null", out);
}

static void put_scope(const struct report *r, const struct report_row *row, FILE *out)
{
	const struct scope_sums *own = &row->scope.exclusive;

	put_path(r, "path", row->scope.path, out);
	fprintf(out, ",\"depth\":%" PRIu32, row->scope.depth);
	put_optional(out, r->is_inuse ? "exclusive_inuse_bytes" : "exclusive_value", !is_void(r),
		     own->bytes);
	put_optional(out, r->is_inuse ? "exclusive_inuse_objects" : "exclusive_objects",
		     r->objects_type >= 0 && !is_void(r), own->objects);
	put_optional(out, "exclusive_alloc_bytes", r->alloc_type >= 0, own->alloc_bytes);
	put_optional(out, "exclusive_alloc_objects", r->alloc_objects_type >= 0,
		     own->alloc_objects);
	put_peak(r, row, out);
}

static void put_task(const struct report *r, const struct report_row *row, FILE *out)
{
	static const char *const states[] = {
		[REPORT_STATE_UNKNOWN] = "null",
		[REPORT_STATE_LIVE] = "\"live\"",
		[REPORT_STATE_EXITED] = "\"exited\"",
	};

	put_path(r, "scope", row->scope.path, out);
	/* A string: JSON's numbers are doubles to many readers. */
	if (row->task.is_task)
		fprintf(out, ",\"task\":\"%" PRIu64 "\"", (uint64_t)row->task.id);
	else
		fputs(",\"task\":null", out);
	put_path(r, "pid", row->task.pid, out);
	fprintf(out, ",\"state\":%s", states[row->task.state]);
	put_peak(r, row, out);
}

static void put_row(const struct report *r, const struct report_row *row, FILE *out)
{
	fputc('{', out);
	put_pair(out, "name", strset_get(r->names, row->name));
	fputc(',', out);
	put_values(r, row, out);
	if (r->opts->by == REPORT_BY_FUNCTION)
		put_optional(out, r->is_inuse ? "cumulative_inuse_bytes" : "cumulative_value",
			     !row->row_cnt && !is_void(r), row->cumulative);
	if (r->opts->by == REPORT_BY_SCOPE)
		put_scope(r, row, out);
	if (r->opts->by == REPORT_BY_INSTANCE)
		put_task(r, row, out);
	if (row->row_cnt)
		fprintf(out, ",\"row_cnt\":%zu", row->row_cnt);
	if (row->sample_cnt) {
		put_frames(r, &r->p->samples.data[r->order.data[row->sample_first]], out);
		put_parts(r, row, out);
	}
	fputc('}', out);
}

static bool is_size(uint64_t bytes)
{
	return bytes && bytes <= INT64_MAX;
}

static void put_percent(FILE *out, const char *key, double share)
{
	if (isnan(share))
		fprintf(out, ",\"%s\":null", key);
	else
		fprintf(out, ",\"%s\":%.6g", key, 100 * share);
}

/* The one that was in force; of processes with different ones there is none to be told. */
static void put_limit(const struct recording *rec, FILE *out)
{
	const struct recording_limit *l = &rec->limit;
	bool is_of_one_cpu = recording_is_of_one_cpu(rec);

	if (!rec->is_known || (l->cpu_share > 0) == (l->one_cpu > 0)) {
		fputs(",\"limit_percent\":null,\"limit_of\":null", out);
		return;
	}
	put_percent(out, "limit_percent", is_of_one_cpu ? l->one_cpu : l->cpu_share);
	fprintf(out, ",\"limit_of\":\"%s\"", is_of_one_cpu ? "one_cpu" : "cpu_time");
}

static void put_process(const struct report *r, FILE *out)
{
	const struct recording *rec = &r->p->recording;

	if (!rec->is_known) {
		fputs(",\"process\":null", out);
		return;
	}
	fprintf(out, ",\"process\":{\"pid\":%" PRId32 ",", rec->pid);
	put_pair(out, "comm", profile_text(r->p, rec->comm_str));
	fputc(',', out);
	put_pair(out, "exe", profile_text(r->p, rec->exe_str));
	fprintf(out, ",\"process_cnt\":%" PRIu32 "}", rec->process_cnt ? rec->process_cnt : 1);
}

/* How it was recorded, and what its numbers are of. */
static void put_recording(const struct report *r, FILE *out)
{
	static const char *const inuse[] = {
		[RECORDING_INUSE_ALL] = "known",
		[RECORDING_INUSE_SINCE] = "since",
		[RECORDING_INUSE_UNKNOWN] = "unknown",
	};
	const struct recording *rec = &r->p->recording;
	bool is_since = rec->is_known && rec->inuse == RECORDING_INUSE_SINCE;

	put_percent(out, "overhead_percent", rec->is_known ? rec->overhead_share : NAN);
	put_percent(out, "overhead_one_cpu_percent", rec->is_known ? rec->overhead_one_cpu : NAN);
	put_limit(rec, out);
	put_process(r, out);
	if (rec->is_known && rec->reason_str) {
		fputc(',', out);
		put_pair(out, "reason", profile_text(r->p, rec->reason_str));
	} else {
		fputs(",\"reason\":null", out);
	}
	if (rec->is_known)
		fprintf(out, ",\"inuse\":\"%s\"", inuse[rec->inuse]);
	else
		fputs(",\"inuse\":null", out);
	put_optional(out, "inuse_since_ns", is_since && rec->inuse_since_ns > 0,
		     rec->inuse_since_ns);
	put_optional(out, "watched_ns", rec->is_known && rec->duration_ns > 0, rec->watched_ns);
	put_optional(out, "rss_begin_bytes", rec->is_known && is_size(rec->rss_begin_bytes),
		     (int64_t)rec->rss_begin_bytes);
	put_optional(out, "rss_end_bytes", rec->is_known && is_size(rec->rss_end_bytes),
		     (int64_t)rec->rss_end_bytes);
	put_optional(out, "exec_held_bytes", is_size(rec->exec_held_bytes),
		     (int64_t)rec->exec_held_bytes);
	if (rec->is_known)
		fprintf(out, ",\"is_lossy\":%s", rec->is_lossy ? "true" : "false");
	else
		fputs(",\"is_lossy\":null", out);
}

static void put_head(const struct report *r, FILE *out)
{
	static const char *const by[] = {
		[REPORT_BY_STACK] = "stack",   [REPORT_BY_FUNCTION] = "function",
		[REPORT_BY_MODULE] = "module", [REPORT_BY_THREAD] = "thread",
		[REPORT_BY_SCOPE] = "scope",   [REPORT_BY_INSTANCE] = "instance",
		[REPORT_BY_LABEL] = "label",
	};
	const struct profile *p = r->p;
	int64_t duration_ns = p->duration_ns > 0    ? p->duration_ns :
			      p->recording.is_known ? p->recording.duration_ns :
						      0;
	bool is_by_bytes =
		!strcmp(profile_text(p, p->period_type.unit_str), "bytes") && p->period > 0;

	fputc('{', out);
	put_pair(out, "by", by[r->opts->by]);
	fputc(',', out);
	if (r->opts->by == REPORT_BY_LABEL) {
		put_pair(out, "label", r->opts->label_key);
		fputc(',', out);
	}
	put_pair(out, "value_type", profile_text(p, p->types.data[r->value_type].type_str));
	fputc(',', out);
	put_pair(out, "value_unit", profile_text(p, p->types.data[r->value_type].unit_str));
	put_optional(out, "time_ns", p->time_ns > 0, p->time_ns);
	put_optional(out, "duration_ns", duration_ns > 0, duration_ns);
	put_optional(out, "rate_bytes", is_by_bytes, p->period);
	put_recording(r, out);
	fputs(",\n\"total\":{", out);
	put_values(r, &r->total, out);
	if (r->opts->scope) {
		fputc(',', out);
		put_pair(out, "scope", r->opts->scope);
		put_optional(out, r->is_inuse ? "profile_inuse_bytes" : "profile_value",
			     !is_void(r), r->whole.value);
	}
	fputs("},\n\"rows\":[", out);
}

static void put_rows(const struct report *r, const struct report_row *rows, size_t cnt, FILE *out)
{
	for (size_t i = 0; i < cnt; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_row(r, &rows[i], out);
	}
}

static void put_outstanding(const struct report *r, FILE *out)
{
	const struct report_row *all = &r->outstanding_total;

	fputs("],\n\"outstanding\":{", out);
	put_first_optional(out, "task_cnt", !is_void(r), (int64_t)all->row_cnt);
	put_optional(out, "inuse_bytes", !is_void(r), all->value);
	put_optional(out, "inuse_objects", !is_void(r), all->objects);
	fputs(",\"rows\":[", out);
	put_rows(r, r->outstanding.data, r->outstanding.cnt, out);
	fputs("]}", out);
}

int report_write_json(const struct report *r, FILE *out)
{
	put_head(r, out);
	put_rows(r, r->rows.data, r->rows.cnt, out);
	if (r->opts->by == REPORT_BY_INSTANCE)
		put_outstanding(r, out);
	else
		fputc(']', out);
	fputs(",\n\"comments\":[", out);
	for (size_t i = 0; i < r->p->comments.cnt; i++) {
		fputs(i ? ",\n" : "\n", out);
		json_put_text(out, profile_text(r->p, r->p->comments.data[i]));
	}
	fputs("]}\n", out);
	return 0;
}
