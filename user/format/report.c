/* SPDX-License-Identifier: MIT */
/* report.c - see report.h. Collapsed stacks are short enough to live here. */
#include "format/report.h"

#include <errno.h>

#include "format/report_rows.h"

/* A frame's name in the "a;b;c count" form: the separators may not occur in it. */
static void put_collapsed_name(const char *name, FILE *out)
{
	for (; *name; name++)
		fputc(*name == ';' || *name == '\n' ? ':' : *name, out);
}

/* Root first, innermost inline last. */
static void put_collapsed(const struct profile *p, const struct profile_sample *s, FILE *out)
{
	bool is_first = true;
	char buf[512];

	for (uint32_t i = s->loc_cnt; i-- > 0;) {
		uint32_t loc = p->sample_locs.data[s->loc_first + i];
		const struct profile_location *l = &p->locations.data[loc];

		for (uint32_t k = l->line_cnt ? l->line_cnt : 1; k-- > 0;) {
			const char *name = report_location_name(p, loc, buf, sizeof(buf));

			if (l->line_cnt)
				name = profile_text(
					p, p->functions.data[p->lines.data[l->line_first + k].function]
						   .name_str);
			if (!is_first)
				fputc(';', out);
			put_collapsed_name(name, out);
			is_first = false;
		}
	}
}

int report_collapsed(const struct profile *p, const struct report_table *t, FILE *out)
{
	const struct report_row *r;

	vec_each(&t->rows, r) {
		if (r->inuse.bytes < 0.5)
			continue;
		if (r->is_other)
			fputs("(other)", out);
		else
			put_collapsed(p, r->sample, out);
		fprintf(out, " %.0f\n", r->inuse.bytes);
	}
	return 0;
}

int report_write(const struct profile *p, const struct report_options *opts, FILE *out)
{
	struct report_options o = *opts;
	struct report_table t;
	int err;

	if (o.format == REPORT_COLLAPSED)
		o.by = REPORT_BY_STACK;
	err = report_table_build(p, &o, &t);
	if (err)
		return err;
	switch (o.format) {
	case REPORT_TEXT:
		err = report_text(p, &o, &t, out);
		break;
	case REPORT_JSON:
		err = report_json(p, &o, &t, out);
		break;
	case REPORT_COLLAPSED:
		err = report_collapsed(p, &t, out);
		break;
	}
	report_table_release(&t);
	if (!err && (fflush(out) || ferror(out)))
		err = -EIO;
	return err;
}
