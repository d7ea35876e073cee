/* SPDX-License-Identifier: MIT */
/*
 * report_json.c - the report for programs: one object, keys that stay, units in their names.
 *
 * Strings are valid UTF-8 already; only what RFC 8259 asks for is escaped.
 */
#include <string.h>

#include "format/report_rows.h"

static void put_string(const char *s, FILE *out)
{
	fputc('"', out);
	for (; *s; s++) {
		unsigned char c = *s;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void put_estimate(const struct report_table *t, const struct estimate *e, FILE *out)
{
	double low, high;

	fprintf(out, "\"inuse_bytes\": %.0f, \"inuse_objects\": %.0f", e->bytes, e->objects);
	if (!t->has_error)
		return;
	estimate_interval(e, &low, &high);
	fprintf(out, ", \"inuse_bytes_low\": %.0f, \"inuse_bytes_high\": %.0f, \"samples\": %llu",
		low, high, (unsigned long long)e->samples);
}

static void put_frame(const struct profile *p, uint32_t loc, uint32_t line, FILE *out)
{
	const struct profile_location *l = &p->locations.data[loc];
	char buf[512];

	fputs("{\"function\": ", out);
	if (l->line_cnt) {
		const struct profile_line *ln = &p->lines.data[line];
		const struct profile_function *fn = &p->functions.data[ln->function];

		put_string(profile_text(p, fn->name_str), out);
		if (fn->filename_str) {
			fputs(", \"file\": ", out);
			put_string(profile_text(p, fn->filename_str), out);
			fprintf(out, ", \"line\": %lld", (long long)ln->line);
		}
	} else {
		put_string(report_location_name(p, loc, buf, sizeof(buf)), out);
	}
	fputs(", \"module\": ", out);
	put_string(report_location_module(p, loc), out);
	fputc('}', out);
}

/* Leaf first. */
static void put_stack(const struct profile *p, const struct profile_sample *s, FILE *out)
{
	bool is_first = true;

	fputs(", \"frames\": [", out);
	for (uint32_t i = 0; i < s->loc_cnt; i++) {
		uint32_t loc = p->sample_locs.data[s->loc_first + i];
		const struct profile_location *l = &p->locations.data[loc];

		for (uint32_t k = 0; k < (l->line_cnt ? l->line_cnt : 1); k++) {
			fputs(is_first ? "" : ", ", out);
			put_frame(p, loc, l->line_first + k, out);
			is_first = false;
		}
	}
	fputc(']', out);
}

static void put_row(const struct profile *p, const struct report_options *opts,
		    const struct report_table *t, const struct report_row *r, FILE *out)
{
	fputs("    {", out);
	put_estimate(t, &r->inuse, out);
	if (t->value_alloc >= 0)
		fprintf(out, ", \"allocated_bytes\": %.0f, \"allocated_objects\": %.0f",
			r->alloc_bytes, r->alloc_objects);
	if (r->is_other) {
		fprintf(out, ", \"other_rows\": %zu", r->other_cnt);
	} else if (opts->by == REPORT_BY_STACK) {
		fprintf(out, ", \"threads\": %zu", r->thread_cnt);
		put_stack(p, r->sample, out);
	} else {
		fputs(", \"name\": ", out);
		put_string(r->name, out);
		if (opts->by == REPORT_BY_FUNCTION)
			fprintf(out, ", \"cumulative_inuse_bytes\": %.0f", r->cumulative_bytes);
	}
	fputc('}', out);
}

int report_json(const struct profile *p, const struct report_options *opts,
		const struct report_table *t, FILE *out)
{
	static const char *const by[] = { "stack", "function", "module", "thread" };

	fprintf(out, "{\n  \"by\": \"%s\",\n  \"time_ns\": %lld,\n  \"unit\": ", by[opts->by],
		(long long)p->time_ns);
	put_string(t->unit, out);
	if (t->has_error)
		fprintf(out, ",\n  \"rate_bytes\": %lld", (long long)p->period);
	fputs(",\n  \"total\": {", out);
	put_estimate(t, &t->total, out);
	if (t->value_alloc >= 0)
		fprintf(out, ", \"allocated_bytes\": %.0f, \"allocated_objects\": %.0f",
			t->alloc_bytes, t->alloc_objects);
	fputs("},\n  \"rows\": [\n", out);
	for (size_t i = 0; i < t->rows.cnt; i++) {
		put_row(p, opts, t, &t->rows.data[i], out);
		fputs(i + 1 < t->rows.cnt ? ",\n" : "\n", out);
	}
	fputs("  ],\n  \"comments\": [", out);
	for (size_t i = 0; i < p->comments.cnt; i++) {
		fputs(i ? ",\n    " : "\n    ", out);
		put_string(profile_text(p, p->comments.data[i]), out);
	}
	fputs(p->comments.cnt ? "\n  ]\n}\n" : "]\n}\n", out);
	return 0;
}
