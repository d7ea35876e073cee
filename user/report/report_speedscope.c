/* SPDX-License-Identifier: MIT */
/*
 * report_speedscope.c - JSON for speedscope (https://www.speedscope.app/file-format-schema.json).
 *
 * One profile of the kind "sampled" for each shown value, bytes in use first: stacks, root first,
 * as indexes of shared frames, and the weight of each. The format has no labels, and negative
 * weights have no width, so stacks without a positive weight are left out.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/vec.h"
#include "report/report_rows.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

struct speedscope {
	const struct report *r;
	struct json j;
	uint32_t *frame_first; /* by location: index of its first line's frame */
	uint32_t no_stack; /* frame for samples without a stack */
};

static void put_frame(struct speedscope *s, const struct report_frame *f)
{
	const struct profile *p = s->r->p;
	char buf[REPORT_NAME_BUF];
	const char *file = "";

	if (f->line)
		file = profile_text(p, p->functions.data[f->line->function].filename_str);
	if (!file[0] && f->location->mapping != HT_NO_INDEX)
		file = profile_text(p, p->mappings.data[f->location->mapping].filename_str);
	json_line(&s->j);
	json_begin(&s->j, NULL, '{');
	json_text(&s->j, "name", report_frame_name(p, f, buf, sizeof(buf)));
	if (file[0])
		json_text(&s->j, "file", file);
	if (f->line && f->line->line > 0)
		json_format(&s->j, "line", "%" PRId64, f->line->line);
	json_end(&s->j, '}');
}

static void put_frames(struct speedscope *s)
{
	const struct profile *p = s->r->p;
	uint32_t next = 0;

	json_begin(&s->j, "shared", '{');
	json_begin(&s->j, "frames", '[');
	for (size_t i = 0; i < p->locations.cnt; i++) {
		struct report_frame f = { .location = &p->locations.data[i] };
		uint32_t cnt = f.location->line_cnt;

		s->frame_first[i] = next;
		next += cnt ? cnt : 1;
		for (uint32_t k = 0; k < cnt; k++) {
			f.line = &p->lines.data[f.location->line_first + k];
			put_frame(s, &f);
		}
		if (!cnt)
			put_frame(s, &f);
	}
	s->no_stack = next;
	json_line(&s->j);
	json_begin(&s->j, NULL, '{');
	json_text(&s->j, "name", "(no stack)");
	json_end(&s->j, '}');
	json_end(&s->j, ']');
	json_end(&s->j, '}');
}

/* Root first; in a location, the outermost of inlined functions first. */
static void put_stack(struct speedscope *s, const struct profile_sample *sample)
{
	const struct profile *p = s->r->p;

	json_line(&s->j);
	json_begin(&s->j, NULL, '[');
	for (uint32_t i = sample->loc_cnt; i-- > 0;) {
		uint32_t location = p->sample_locs.data[sample->loc_first + i];
		uint32_t cnt = p->locations.data[location].line_cnt;

		for (uint32_t k = cnt ? cnt : 1; k-- > 0;)
			json_format(&s->j, NULL, "%" PRIu32, s->frame_first[location] + k);
	}
	if (!sample->loc_cnt)
		json_format(&s->j, NULL, "%" PRIu32, s->no_stack);
	json_end(&s->j, ']');
}

/* The format's unit; "none" for others. */
static const char *unit_of(const struct profile *p, int type)
{
	static const char *const units[] = { "bytes", "nanoseconds", "microseconds", "milliseconds",
					     "seconds" };
	const char *unit = profile_text(p, p->types.data[type].unit_str);

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(unit, units[i]))
			return units[i];
	return "none";
}

/* at: offset of the value in a row. */
static void put_profile(struct speedscope *s, int type, size_t at)
{
	const struct report *r = s->r;
	const struct report_row *row;
	int64_t total = 0;

	if (type < 0)
		return;
	json_line(&s->j);
	json_begin(&s->j, NULL, '{');
	json_text(&s->j, "type", "sampled");
	json_text(&s->j, "name", profile_text(r->p, r->p->types.data[type].type_str));
	json_text(&s->j, "unit", unit_of(r->p, type));
	json_begin(&s->j, "samples", '[');
	vec_each(&r->rows, row)
		if (*(const int64_t *)((const char *)row + at) > 0)
			put_stack(s, &r->p->samples.data[r->order.data[row->sample_first]]);
	json_end(&s->j, ']');
	json_begin(&s->j, "weights", '[');
	vec_each(&r->rows, row) {
		int64_t weight = *(const int64_t *)((const char *)row + at);

		if (weight <= 0)
			continue;
		json_format(&s->j, NULL, "%" PRId64, weight);
		total = report_add_saturating(total, weight);
	}
	json_end(&s->j, ']');
	json_format(&s->j, "startValue", "0");
	json_format(&s->j, "endValue", "%" PRId64, total);
	json_end(&s->j, '}');
}

int report_write_speedscope(const struct report *r, FILE *out)
{
	struct speedscope s = { .r = r, .j = { .out = out } };

	s.frame_first = calloc(r->p->locations.cnt + 1, sizeof(*s.frame_first));
	if (!s.frame_first)
		return -ENOMEM;
	json_begin(&s.j, NULL, '{');
	json_text(&s.j, "$schema", SCHEMA);
	json_text(&s.j, "exporter", "heaptap");
	json_text(&s.j, "name", r->opts->path ? r->opts->path : "heap profile");
	json_format(&s.j, "activeProfileIndex", "0");
	put_frames(&s);
	json_begin(&s.j, "profiles", '[');
	put_profile(&s, r->value_type, offsetof(struct report_row, value));
	put_profile(&s, r->objects_type, offsetof(struct report_row, objects));
	put_profile(&s, r->alloc_type, offsetof(struct report_row, alloc));
	put_profile(&s, r->alloc_objects_type, offsetof(struct report_row, alloc_objects));
	json_end(&s.j, ']');
	json_end(&s.j, '}');
	fputc('\n', out);
	free(s.frame_first);
	return 0;
}
