/* SPDX-License-Identifier: MIT */
/*
 * report_collapsed.c - "root;caller;leaf value" a line, what flame graph programs read.
 *
 * By thread or module the stack stands on a frame of that name. The format has no escapes: a
 * semicolon in a name becomes ':', a line break a space. Values of 0 and below have no width in
 * a flame graph and are left out.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/vec.h"
#include "format/report_rows.h"

static void put_name(const char *name, FILE *out)
{
	for (; *name; name++)
		fputc(*name == ';' ? ':' : iscntrl((unsigned char)*name) ? ' ' : *name, out);
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
	bool has_base = true;

	if (r->opts->by == REPORT_BY_THREAD)
		put_name(report_sample_thread(r, s), out);
	else if (r->opts->by == REPORT_BY_MODULE)
		put_name(report_sample_module(r, s), out);
	else
		has_base = false;
	for (uint32_t i = s->loc_cnt; i-- > 0;)
		put_location(r->p, r->p->sample_locs.data[s->loc_first + i],
			     !has_base && i + 1 == s->loc_cnt, out);
	if (!has_base && !s->loc_cnt)
		fputs("(no stack)", out);
	fprintf(out, " %" PRId64 "\n", value);
}

int report_write_collapsed(const struct report *r, FILE *out)
{
	const struct report_row *row;
	const struct profile_sample *s;

	if (r->opts->by != REPORT_BY_STACK) {
		vec_each(&r->p->samples, s) {
			int64_t value = r->p->values.data[s->value_first + r->value_type];

			if (value > 0)
				put_stack(r, s, value, out);
		}
		return 0;
	}
	vec_each(&r->rows, row) {
		if (row->value <= 0)
			continue;
		if (row->row_cnt)
			fprintf(out, "(other) %" PRId64 "\n", row->value);
		else
			put_stack(r, &r->p->samples.data[r->order.data[row->sample_first]],
				  row->value, out);
	}
	return 0;
}
