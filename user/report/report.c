/* SPDX-License-Identifier: MIT */
/* report.c - see report.h. */
#include "report/report.h"

#include <errno.h>
#include <stdlib.h>

#include "report/report_rows.h"
#include "report/report_text.h"

/* Write a table by growth or by temporary blocks. */
static int write_ranked(const struct profile *p, const struct report_options *opts, FILE *out)
{
	struct report_options all = *opts;
	struct report *r;
	int err;

	all.row_cap = 0; /* rows are folded after comparing */
	all.lines = 0;
	err = report_open(p, &all, &r);
	if (err)
		return err;
	err = report_write_ranked(r, opts->row_cap, out);
	report_close(r);
	return err;
}

static int write_once(const struct profile *p, const struct report_options *opts, FILE *out)
{
	struct report *r;
	int err = report_open(p, opts, &r);

	if (err)
		return err;
	switch (opts->format) {
	case REPORT_TEXT:
		err = report_write_text(r, out);
		break;
	case REPORT_JSON:
		err = report_write_json(r, out);
		break;
	case REPORT_COLLAPSED:
		err = r->is_unknown && r->is_inuse ? -ENODATA : report_write_collapsed(r, out);
		break;
	case REPORT_HEAP:
		err = report_write_heap(r, out);
		break;
	case REPORT_HTML:
		err = report_write_html(r, out);
		break;
	case REPORT_HEAP_V2:
		err = report_write_heap_v2(r, out);
		break;
	}
	report_close(r);
	return err;
}

/* The number of rows that a cap gives a tree is known only once it is made: reduce the cap until it fits. */
static int write_fitting(const struct profile *p, const struct report_options *opts, FILE *out)
{
	struct report_options o = *opts;
	bool fits = false;
	int err = 0;

	if (!o.row_cap || o.row_cap > o.lines)
		o.row_cap = o.lines;
	while (!err && !fits) {
		char *text = NULL;
		size_t bytes, cnt;
		FILE *f = open_memstream(&text, &bytes);

		if (!f)
			return -ENOMEM;
		err = write_once(p, &o, f);
		if (fclose(f) && !err)
			err = -ENOMEM;
		cnt = err ? 0 : report_count_lines(text);
		fits = cnt <= o.lines || o.row_cap == 1;
		if (!err && fits)
			fputs(text, out);
		o.row_cap -= o.row_cap > 1;
		free(text);
	}
	return err;
}

bool report_has_scopes(const struct profile *p)
{
	const struct profile_sample *s;

	vec_each(&p->samples, s)
		if (profile_sample_label(p, s, "scope"))
			return true;
	return false;
}

int report_write(const struct profile *p, const struct report_options *opts, FILE *out)
{
	struct report_options o = *opts;
	bool is_tree;
	int err;

	if (o.format == REPORT_TEXT && o.by_is_default && !o.shows_stacks && report_has_scopes(p))
		o.by = REPORT_BY_SCOPE;
	if (o.format == REPORT_TEXT &&
	    (o.sort == REPORT_SORT_GROWTH || o.sort == REPORT_SORT_TEMPORARY)) {
		err = write_ranked(p, &o, out);
		goto out;
	}
	is_tree = o.by == REPORT_BY_SCOPE || o.by == REPORT_BY_INSTANCE;
	err = o.format == REPORT_TEXT && o.lines && is_tree && !o.shows_notes ?
		      write_fitting(p, &o, out) :
		      write_once(p, &o, out);
out:
	if (!err && (fflush(out) || ferror(out)))
		err = errno ? -errno : -EIO;
	return err;
}
