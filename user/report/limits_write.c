/* SPDX-License-Identifier: MIT */
/*
 * limits_write.c - writes limits and their verdicts: as text for people, as JSON, and as JUnit's
 * XML for test runners.
 *
 * JSON uses the keys of report_json.c for the same things; unknown values are null. In JUnit a
 * limit is a test. A broken limit is a failure; an unknown one is an error, since nothing was found
 * out.
 */

#include "base/json.h"
#include "base/printable.h"
#include "base/units.h"
#include "profile/profile.h"
#include "report/limits.h"

#define VALUE_BUF (UNITS_BUF + 8)
#define SENTENCE_BUF 320
#define DAY_S 86400

/* In JSON and JUnit. */
static const char *verdict_name(enum limit_verdict v)
{
	static const char *const names[] = { "unknown", "kept", "broken" };

	return names[v];
}

/* In text. */
static const char *verdict_word(enum limit_verdict v)
{
	static const char *const words[] = { "unknown", "pass", "FAIL" };

	return words[v];
}

/* "1.17 MiB/min", "3.40 MiB" */
static char *format_value(const struct limit_result *res, double value, char buf[VALUE_BUF])
{
	bool is_rate = res->kind == LIMIT_GROWTH;
	char text[UNITS_BUF];

	format_bytes(fabs(is_rate ? 60 * value : value), text, sizeof(text));
	snprintf(buf, VALUE_BUF, "%s%s%s", value < 0 ? "-" : "", text, is_rate ? "/min" : "");
	return buf;
}

static const char *title_of(enum limit_kind kind)
{
	static const char *const titles[] = { "growth",
					      "in use",
					      "more in use",
					      "in use by ended tasks",
					      "unexplained growth of resident memory",
					      "free memory kept by malloc" };

	return titles[kind];
}

/* To read memory by row takes some time, and growth is between two readings. */
static bool is_of_reading(enum limit_kind kind)
{
	return kind == LIMIT_UNEXPLAINED || kind == LIMIT_RETAINED;
}

/* "growth: 1.17 MiB/min, at least 1.05 MiB/min; limit 500 KiB/min" */
static void format_sentence(const struct limit_result *res, char buf[SENTENCE_BUF])
{
	char value[VALUE_BUF], low[VALUE_BUF], high[VALUE_BUF], limit[VALUE_BUF], sure[96] = "";

	if (res->low == res->high)
		snprintf(sure, sizeof(sure), "%s",
			 res->is_lossy		  ? " or more" :
			 is_of_reading(res->kind) ? "" :
						    " exactly");
	else if (res->verdict == LIMIT_BROKEN)
		snprintf(sure, sizeof(sure), ", at least %s", format_value(res, res->low, low));
	else if (res->verdict == LIMIT_KEPT)
		snprintf(sure, sizeof(sure), ", at most %s", format_value(res, res->high, high));
	else if (!isnan(res->low))
		snprintf(sure, sizeof(sure), ", between %s and %s",
			 format_value(res, res->low, low), format_value(res, res->high, high));
	format_value(res, res->limit, limit);
	if (isnan(res->limit))
		snprintf(buf, SENTENCE_BUF, "%s: not known", title_of(res->kind));
	else if (isnan(res->value))
		snprintf(buf, SENTENCE_BUF, "%s: not known; limit %s", title_of(res->kind), limit);
	else
		snprintf(buf, SENTENCE_BUF, "%s: %s%s; limit %s", title_of(res->kind),
			 format_value(res, res->value, value), sure, limit);
}

static uint64_t seconds_of(const struct limits *l)
{
	int64_t ns = l->p->recording.is_known ? l->p->recording.duration_ns : 0;

	return ns > 0 ? (uint64_t)ns / 1000000000 : 0;
}

/* A sentence on what would tell; "" if nothing would, or if no advice is needed. */
static void format_advice(const struct limits *l, const struct limit_result *res,
			  char buf[SENTENCE_BUF])
{
	uint64_t seconds = seconds_of(l) + (uint64_t)res->more_s;

	buf[0] = '\0';
	if (res->verdict != LIMIT_UNKNOWN)
		return;
	if (res->more_s > 0 && seconds < DAY_S)
		snprintf(buf, SENTENCE_BUF,
			 "A recording of %" PRIu64 " s would probably settle it: -d %" PRIu64,
			 seconds, seconds);
	else if (res->rate_bytes > 1)
		snprintf(buf, SENTENCE_BUF,
			 "A finer rate would probably settle it: --rate %" PRIu64, res->rate_bytes);
	else if (res->rate_bytes == 1)
		snprintf(buf, SENTENCE_BUF,
			 "Only --rate 1, which records every allocation, would "
			 "settle it");
}

/* ---- text ---- */

static void put_who(const struct limits *l, FILE *out)
{
	const struct recording *rec = &l->p->recording;
	char comm[64] = "", duration[UNITS_BUF], rate[UNITS_BUF];

	if (!rec->is_known) {
		fputs("a profile that does not say how it was recorded\n", out);
		return;
	}
	snprintf(comm, sizeof(comm), "%.48s", profile_text(l->p, rec->comm_str));
	make_printable(comm);
	fprintf(out, "%s (PID %d), %s, ", comm[0] ? comm : "process", rec->pid,
		format_duration((uint64_t)(rec->duration_ns > 0 ? rec->duration_ns : 0), duration,
				sizeof(duration)));
	if (l->p->period > 1)
		fprintf(out, "one sample per %s\n",
			format_bytes((double)l->p->period, rate, sizeof(rate)));
	else
		fputs("every allocation\n", out);
}

static void put_rows(const struct limit_result *res, FILE *out)
{
	const struct limit_row *row;
	char value[VALUE_BUF];

	vec_each(&res->rows, row)
		fprintf(out, "  %14s  %s\n", format_value(res, row->value, value), row->name);
	if (res->more_row_cnt)
		fprintf(out, "  %14s  and %zu more\n", "", res->more_row_cnt);
}

static void put_text(const struct limits *l, FILE *out)
{
	char text[SENTENCE_BUF];

	put_who(l, out);
	for (size_t i = 0; i < l->cnt; i++) {
		const struct limit_result *res = &l->results[i];

		format_sentence(res, text);
		fprintf(out, "%-8s %s\n", verdict_word(res->verdict), text);
		if (res->why[0])
			fprintf(out, "         %s\n", res->why);
		format_advice(l, res, text);
		if (text[0])
			fprintf(out, "         %s\n", text);
		put_rows(res, out);
	}
	if (l->failure[0])
		fprintf(out, "unknown  %s\n", l->failure);
	fprintf(out, "%s (%g %% confidence)\n", verdict_word(l->verdict), 100 * (1 - l->opts.tail));
}

/* ---- JSON ---- */

/* "growth_bytes_per_s", "inuse_bytes" */
static void put_bounds(struct json *j, enum limit_kind kind, double value, double low, double high)
{
	static const char *const keys[][3] = {
		[LIMIT_GROWTH] = { "growth_bytes_per_s", "growth_bytes_per_s_low",
				   "growth_bytes_per_s_high" },
		[LIMIT_INUSE] = { "inuse_bytes", "inuse_bytes_low", "inuse_bytes_high" },
		[LIMIT_MORE] = { "inuse_bytes_delta", "inuse_bytes_delta_low",
				 "inuse_bytes_delta_high" },
		[LIMIT_EXITED] = { "inuse_bytes", "inuse_bytes_low", "inuse_bytes_high" },
		[LIMIT_UNEXPLAINED] = { "unexplained_bytes", "unexplained_bytes_low",
					"unexplained_bytes_high" },
		[LIMIT_RETAINED] = { "retained_bytes", "retained_bytes_low",
				     "retained_bytes_high" },
	};
	const int decimals = kind == LIMIT_GROWTH;

	json_number(j, keys[kind][0], decimals, value);
	json_number(j, keys[kind][1], decimals, low);
	json_number(j, keys[kind][2], decimals, high);
}

/* "growth", "inuse", "inuse_more", "exited_scope", "unexplained", "retained" */
static const char *limit_name(enum limit_kind kind)
{
	static const char *const names[] = { "growth",	     "inuse",	    "inuse_more",
					     "exited_scope", "unexplained", "retained" };

	return names[kind];
}

static void put_json_result(const struct limits *l, const struct limit_result *res, struct json *j)
{
	const struct limit_row *row;
	char advice[SENTENCE_BUF];

	format_advice(l, res, advice);
	json_line(j);
	json_begin(j, NULL, '{');
	json_text(j, "limit", limit_name(res->kind));
	json_text(j, "verdict", verdict_name(res->verdict));
	json_number(j, res->kind == LIMIT_GROWTH ? "limit_bytes_per_s" : "limit_bytes",
		    res->kind == LIMIT_GROWTH, res->limit);
	put_bounds(j, res->kind, res->value, res->low, res->high);
	if (res->kind == LIMIT_MORE)
		json_number(j, "inuse_bytes_before", 0, res->before);
	json_number(j, "more_s", 0, res->more_s > 0 ? res->more_s : NAN);
	json_number(j, "needed_rate_bytes", 0, res->rate_bytes ? (double)res->rate_bytes : NAN);
	json_text(j, "why", res->why[0] ? res->why : NULL);
	json_text(j, "advice", advice[0] ? advice : NULL);
	json_begin(j, "rows", '[');
	vec_each(&res->rows, row) {
		json_line(j);
		json_begin(j, NULL, '{');
		json_text(j, "name", row->name);
		put_bounds(j, res->kind, row->value, row->low, row->high);
		json_end(j, '}');
	}
	json_end(j, ']');
	json_format(j, "omitted_cnt", "%zu", res->more_row_cnt);
	json_end(j, '}');
}

static void put_json(const struct limits *l, FILE *out)
{
	const struct recording *rec = &l->p->recording;
	struct json j = { .out = out };

	json_begin(&j, NULL, '{');
	json_text(&j, "verdict", verdict_name(l->verdict));
	json_text(&j, "failure", l->failure[0] ? l->failure : NULL);
	json_format(&j, "confidence", "%.10g", 1 - l->opts.tail);
	json_number(&j, "duration_ns", 0,
		    rec->is_known && rec->duration_ns > 0 ? (double)rec->duration_ns : NAN);
	json_number(&j, "rate_bytes", 0, l->p->period > 0 ? (double)l->p->period : NAN);
	if (rec->is_known) {
		json_begin(&j, "process", '{');
		json_format(&j, "pid", "%" PRId32, rec->pid);
		json_text(&j, "comm", profile_text(l->p, rec->comm_str));
		json_text(&j, "exe", profile_text(l->p, rec->exe_str));
		json_end(&j, '}');
	} else {
		json_null(&j, "process");
	}
	json_begin(&j, "limits", '[');
	for (size_t i = 0; i < l->cnt; i++)
		put_json_result(l, &l->results[i], &j);
	json_end(&j, ']');
	json_end(&j, '}');
	fputc('\n', out);
}

/* ---- JUnit ---- */

static void put_markup(const char *text, FILE *out)
{
	markup_put(text, strlen(text), out);
}

static void put_case(const struct limits *l, const struct limit_result *res, FILE *out)
{
	const char *element = res->verdict == LIMIT_BROKEN ? "failure" : "error";
	const struct limit_row *row;
	char text[SENTENCE_BUF], value[VALUE_BUF];

	fprintf(out, "  <testcase classname=\"heaptap.check\" name=\"%s\" time=\"%" PRIu64 "\"",
		limit_name(res->kind), seconds_of(l));
	if (res->verdict == LIMIT_KEPT) {
		fputs("/>\n", out);
		return;
	}
	format_sentence(res, text);
	fprintf(out, ">\n    <%s type=\"%s\" message=\"", element, verdict_name(res->verdict));
	put_markup(text, out);
	fputs("\">", out);
	put_markup(res->why, out);
	format_advice(l, res, text);
	fprintf(out, "%s%s\n", res->why[0] && text[0] ? ". " : "", text);
	vec_each(&res->rows, row) {
		fprintf(out, "%s  ", format_value(res, row->value, value));
		put_markup(row->name, out);
		fputc('\n', out);
	}
	fprintf(out, "</%s>\n  </testcase>\n", element);
}

static void put_junit(const struct limits *l, FILE *out)
{
	size_t broken_cnt = 0, unknown_cnt = 0;

	for (size_t i = 0; i < l->cnt; i++) {
		broken_cnt += l->results[i].verdict == LIMIT_BROKEN;
		unknown_cnt += l->results[i].verdict == LIMIT_UNKNOWN;
	}
	unknown_cnt += l->failure[0] != '\0';
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuite name=\"heaptap check\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
		"time=\"%" PRIu64 "\">\n",
		l->cnt + (l->failure[0] != '\0'), broken_cnt, unknown_cnt, seconds_of(l));
	for (size_t i = 0; i < l->cnt; i++)
		put_case(l, &l->results[i], out);
	if (l->failure[0]) {
		fputs("  <testcase classname=\"heaptap.check\" name=\"command\">\n"
		      "    <error type=\"unknown\" message=\"",
		      out);
		put_markup(l->failure, out);
		fputs("\"/>\n  </testcase>\n", out);
	}
	fputs("</testsuite>\n", out);
}

int limits_write(const struct limits *l, enum limit_format format, FILE *out)
{
	if (format == LIMIT_JSON)
		put_json(l, out);
	else if (format == LIMIT_JUNIT)
		put_junit(l, out);
	else
		put_text(l, out);
	return fflush(out) || ferror(out) ? -EIO : 0;
}
