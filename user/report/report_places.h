/* SPDX-License-Identifier: MIT */
/* report_places.h - stacks that are charged to the same place. Internal to the report_*.c files. */
#ifndef HT_REPORT_PLACES_H
#define HT_REPORT_PLACES_H

#include "report/report_rows.h"
#include "report/report_text.h"

/* A frame as it is shown: "SessionStore::touch" and " server.cc:22". */
struct report_named {
	char name[REPORT_NAME_BUF];
	char place[96]; /* with a space in front; "" = no line is known */
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

/* The stacks of r->rows, largest first; those of the same place are one. 0 or -ENOMEM. */
int report_find_places(const struct report *r, struct report_places *ret);
/*
 * For a table of its own, the rows that it is about, by report_compare_rows(); of stacks those of a place are one. 0 or
 * -ENOMEM.
 */
int report_find_ranked(const struct report *r, bool (*is_about)(const struct report_row *row),
		       struct report_places *ret);
/* Of such a table the name of a row: behind so many columns, at the end of the line. */
void report_put_row_name(const struct report *r, const struct report_row *row, size_t used,
			 FILE *out);
void report_name_frame(const struct report *r, const struct report_frame *f,
		       struct report_named *ret);
/* In at most `columns`: the name gives way, not its line. */
char *report_fit_named(const struct report_named *n, size_t columns, char buf[REPORT_FIT_BUF]);
/* Returns the number of callers. */
size_t report_name_place(const struct report *r, const struct report_row *row,
			 struct report_named_place *ret);

#endif
