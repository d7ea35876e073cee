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
/* A row of any kind: its name, and for a stack as report_name_place(). */
void report_name_row(const struct report *r, const struct report_row *row,
		     struct report_named_place *ret);

/*
 * The names of the rows of a table, which end its lines. Rows whose names read alike in the room that there is get a
 * further line with what had none: the first frame in which they differ is there. All rows are added before the first
 * is written. `used`: columns in front of the name.
 */
struct report_names {
	size_t columns, room;
	struct strset *texts;
	VEC(uint32_t) row_cnt; /* by text */
};
/* 0 or -ENOMEM; release in any case. */
int report_names_init(struct report_names *t, const struct report *r, size_t used);
int report_names_add(struct report_names *t, const struct report_named_place *p);
void report_names_put(const struct report_names *t, const struct report_named_place *p, FILE *out);
void report_names_release(struct report_names *t);
/* The same for the first cnt rows: init, all of add, and put. */
int report_names_of(struct report_names *t, const struct report *r, size_t used,
		    const struct report_places *rows, size_t cnt);
void report_names_put_row(const struct report_names *t, const struct report *r,
			  const struct report_row *row, FILE *out);
void report_name_frame(const struct report *r, const struct report_frame *f,
		       struct report_named *ret);
/* Shorten to `columns`: cuts the name, not its line. */
char *report_fit_named(const struct report_named *n, size_t columns, char buf[REPORT_FIT_BUF]);
/* Return the number of callers. */
size_t report_name_place(const struct report *r, const struct report_row *row,
			 struct report_named_place *ret);

#endif
