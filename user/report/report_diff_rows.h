/* SPDX-License-Identifier: MIT */
/* report_diff_rows.h - the rows of a difference. Internal to the report_*.c files. */
#ifndef HT_REPORT_DIFF_ROWS_H
#define HT_REPORT_DIFF_ROWS_H

#include "base/hmap.h"
#include "base/vec.h"
#include "report/report_places.h"
#include "report/report_rows.h"

struct err;

struct diff_side {
	struct report *r;
	const char *name;
};

struct diff_row {
	int64_t name; /* string in diff.names */
	const struct report_row *from; /* the first of them, of side[from_side] */
	int from_side;
	struct report_row at[2]; /* before, after: sums only */
	bool is_in[2];
	double delta, low, high; /* low and high NAN: not known */
	bool is_significant;
};

struct diff {
	struct diff_side side[2];
	const struct report_options *opts;
	struct report_options whole; /* options of both reports */
	struct strset *names;
	struct hmap index; /* name -> row */
	VEC(struct diff_row) rows;
	struct diff_row total;
	/* Sum of rows that are not more than chance, and of those beyond row_cap. */
	struct diff_row rest;
	size_t rest_cnt, chance_cnt, shown_cnt;
};

/*
 * Open a difference, as report_diff(). o must stay while the rows are used; defaults in it are
 * filled in. Rows that are more than chance come first, the largest change on top. Release *ret in
 * any case.
 */
int diff_open(const struct profile *before, const char *before_name, const struct profile *after,
	      const char *after_name, struct report_options *o, struct diff *ret, struct err *why);
void diff_release(struct diff *d);

/* JSON, or text. 0 or -ENOMEM. */
int diff_write(const struct diff *d, FILE *out);
/* Write what precedes the rows of text. */
void diff_write_head(const struct diff *d, FILE *out);

/* Join both into one profile. Its first side[0].r->chosen.cnt samples are those of before, with that sign. */
int diff_join(const struct diff *d, int sign_before, struct profile **ret);
/* Write the picture. 0, -ENOMEM. */
int diff_write_html(const struct diff *d, FILE *out);

#endif
