/* SPDX-License-Identifier: MIT */
/* report_places.h - groups stacks that are charged to the same place. Internal to the report_*.c files. */
#ifndef HT_REPORT_PLACES_H
#define HT_REPORT_PLACES_H

#include "report/report_rows.h"
#include "report/report_text.h"

/* A frame for display: "SessionStore::touch" and " server.cc:22". */
struct report_named {
	char name[REPORT_NAME_BUF];
	char place[96]; /* begins with a space; "" = line not known */
};
struct report_named_place {
	struct report_named own;
	const char *hint;
	struct report_named caller[3];
	size_t caller_cnt;
};
/* As VEC(). */
struct report_places {
	struct report_row *data;
	size_t cnt, cap;
};

/* Group the stacks of r->rows by place, largest first. 0 or -ENOMEM. */
int report_find_places(const struct report *r, struct report_places *ret);
/*
 * Find the rows for a table of its own: those that is_about() accepts, by report_compare_rows().
 * Stacks of one place are one row. 0 or -ENOMEM.
 */
int report_find_ranked(const struct report *r, bool (*is_about)(const struct report_row *row),
		       struct report_places *ret);
/* Write a row's name in such a table; `used` columns of the line are taken, and the name ends it. */
void report_put_row_name(const struct report *r, const struct report_row *row, size_t used,
			 FILE *out);
void report_name_frame(const struct report *r, const struct report_frame *f,
		       struct report_named *ret);
/* Shorten to `columns`: cuts the name, not its line. */
char *report_fit_named(const struct report_named *n, size_t columns, char buf[REPORT_FIT_BUF]);
/* Return the number of callers. */
size_t report_name_place(const struct report *r, const struct report_row *row,
			 struct report_named_place *ret);

#endif
